// A full disk, a broken one, no more processes or descriptors, calls that give less than was asked
// (tests/fakes/faults): nothing that was stored is lost or doubled, nothing stays set, and there is one message. In CI
// a part of the list; all of it with ERGOTUNE_ALL_FAULTS.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/files.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

constexpr int kConfigurations = 4;
/// Measures them all.
const std::vector<std::string> kTune{"tune",         "p.toml", "--device",    "host",  "--strategy", "brute_force",
                                     "--no-confirm", "--json", "--precision", "1000%", "--store",    "p.db"};

/// Each of the configurations has one row, in one session.
std::map<std::string, std::vector<std::string>> expect_complete(const std::filesystem::path& store,
                                                                const std::string& what) {
  const auto rows = stored_rows(store);
  EXPECT_EQ(rows.size(), std::size_t{kConfigurations}) << what;
  for (const auto& [configuration, statuses] : rows)
    EXPECT_EQ(statuses, std::vector<std::string>{"ok"}) << what << configuration;
  return rows;
}

std::size_t lines_of(const std::string& text, const std::string& start) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line);) count += line.starts_with(start);
  return count;
}

struct Faults : ::testing::Test {
  int fired = 0, survived = 0, refused = 0;

  /// The command below the shim; how many calls failed is added to `fired`.
  ProcessResult faulty(const TemporaryFolder& folder, const std::string& fault,
                       const std::vector<std::string>& arguments) {
    const Fault shim(folder, fault);
    const ProcessResult result = ergotune(folder, arguments, 120);
    fired += shim.fired();
    EXPECT_FALSE(result.timed_out) << fault << " hangs: " << result.err;
    EXPECT_EQ(result.signal, 0) << fault << ": " << result.err;
    EXPECT_THAT(result.exit_code, ::testing::AnyOf(0, 1, 2)) << fault << ": " << result.err;
    if (result.exit_code == 0) {
      ++survived;
    } else {
      ++refused;
      // why it ended, and which settings could not be restored
      EXPECT_THAT(lines_of(result.err, "ergotune: "), ::testing::AnyOf(1u, 2u)) << fault << ": " << result.err;
    }
    return result;
  }
  ~Faults() override {
    std::printf("%d calls failed; %d commands went on, %d said why not\n", fired, survived, refused);
  }
};

TEST_F(Faults, AStoreLosesNothingAndASessionGoesOnAfterwards) {
  std::vector<std::string> all;
  for (const int nth : {1, 2, 4, 7, 12})
    for (const char* call :
         {"write,error=28", "write,error=5", "fsync,error=5", "open,error=28", "truncate,error=28", "mmap,error=12"})
      all.push_back(fmt::format("call={},nth={},path=p.db", call, nth));
  all.push_back("call=write,nth=3,error=28,path=p.db,stays");
  for (const std::string& fault : chosen_faults(all, 4)) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const ProcessResult first = faulty(folder, fault, kTune);
    const auto store = folder.path() / "p.db";
    std::map<std::string, std::vector<std::string>> kept;
    if (std::filesystem::exists(store) && std::filesystem::file_size(store) > 0 && first.exit_code == 0)
      kept = stored_rows(store);
    if (first.exit_code == 0) {
      EXPECT_EQ(kept.size(), std::size_t{kConfigurations}) << fault;
    }
    const auto document = json_of(ergotune(folder, kTune));
    EXPECT_EQ(document["evaluated"].get<int>() + document["resumed"].get<int>(), kConfigurations) << fault;
    EXPECT_EQ(integrity(store), "ok") << fault;
    const auto rows = expect_complete(store, fault);
    for (const auto& [configuration, statuses] : kept)
      EXPECT_TRUE(rows.contains(configuration)) << fault << configuration;
  }
  EXPECT_GT(fired, 3);
  EXPECT_GT(refused, 2) << "a store that cannot be written is said";
}

TEST_F(Faults, NoProcessesDescriptorsOrRoomAreNoConfigurationsResult) {
  std::vector<std::string> all;
  for (const int nth : {1, 2, 3, 4, 5, 6}) {
    all.push_back(fmt::format("call=fork,nth={},error=11", nth));
    all.push_back(fmt::format("call=pipe,nth={},error=24", nth));
    all.push_back(fmt::format("call=fork,nth={},error=11,process=worker", nth));
    all.push_back(fmt::format("call=pipe,nth={},error=24,process=worker", nth));
  }
  all.push_back("call=rename,nth=1,error=28");
  all.push_back("call=open,nth=1,error=28,path=ergotune-host");
  all.push_back("call=write,nth=1,error=28,process=worker,path=ergotune-host");
  for (const std::string& fault : chosen_faults(all, 4)) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    faulty(folder, fault, kTune);
    const auto document = json_of(ergotune(folder, kTune));
    EXPECT_EQ(document["evaluated"].get<int>() + document["resumed"].get<int>(), kConfigurations) << fault;
    expect_complete(folder.path() / "p.db", fault);  // the session was found again
  }
  EXPECT_GT(fired, 3);
}

TEST_F(Faults, ShortReadsAndWritesChangeNothing) {
  for (const char* call : {"read", "write"}) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const auto result = faulty(folder, fmt::format("call={},nth=1,error=0,stays", call), kTune);
    ASSERT_EQ(result.exit_code, 0) << call << ": " << result.err;
    EXPECT_EQ(json_of(result)["evaluated"], kConfigurations);
    EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), std::size_t{kConfigurations});
    EXPECT_EQ(integrity(folder.path() / "p.db"), "ok");
  }
  EXPECT_GT(fired, 100);
}

TEST_F(Faults, AWallClockThatStepsChangesNothing) {
  for (const int step : {-7200, 86400}) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const auto result = faulty(folder, fmt::format("call=clock,nth=4,error={}", step),
                               {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm",
                                "--json", "--precision", "1000%", "--budget", "60s", "--store", "p.db"});
    ASSERT_EQ(result.exit_code, 0) << step << ": " << result.err;
    EXPECT_EQ(json_of(result)["statuses"]["ok"], kConfigurations) << step << result.out;
    EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), std::size_t{kConfigurations});
  }
  EXPECT_GT(fired, 1);
}

/// The session and its workers stand still for longer than a kernel may take, as when a batch system suspends a job.
TEST_F(Faults, AMachineThatSleepsGoesOn) {
  TemporaryFolder folder;
  std::string problem = counting_problem(kConfigurations);
  const auto running = folder.path() / "running";  // the second configuration says so, and takes its time
  problem.insert(problem.find("static volatile"), "#include <fcntl.h>\n#include <unistd.h>\n");
  problem.insert(problem.find("for (int i = 0; i < 1000 "),
                 fmt::format("if (turn == 2) {{ close(open(\"{}\", O_CREAT | O_WRONLY, 0600)); usleep(50000); }}\n  ",
                             running.string()));
  folder.write("p.toml", problem);
  ChildProcess session =
      start_ergotune(folder, {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm",
                              "--precision", "1000%", "--store", "p.db", "--time-limit", "2.5"});
  for (int i = 0; i < 6000 && !std::filesystem::exists(running); ++i) ::usleep(10'000);
  std::vector<pid_t> stopped{session.pid()};
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", session.pid()));
  for (pid_t child = 0; children >> child;) stopped.push_back(child);
  for (const pid_t pid : stopped) ::kill(pid, SIGSTOP);
  EXPECT_GE(stopped.size(), 2u) << "the session was over";
  ::usleep(3'000'000);
  for (const pid_t pid : stopped) ::kill(pid, SIGCONT);
  const auto status = session.wait(120);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
  expect_complete(folder.path() / "p.db", "");
}

/// Nobody can be told, or nobody reads to the end: the work is done all the same, and the exit code says what was not.
TEST_F(Faults, StreamsThatTakeNothingEndNoWork) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(kConfigurations));
  const auto shell = [&](const std::string& arguments) {
    ProcessOptions options;
    options.folder = folder.path().string();
    options.environment = {{"XDG_CACHE_HOME", (folder.path() / "cache").string()},
                           {"XDG_DATA_HOME", (folder.path() / "data").string()}};
    options.timeout = 60;
    return run_process({"/bin/bash", "-c", ergotune_program() + " " + arguments}, options);
  };
  const std::string tune = "tune p.toml --device host --strategy brute_force --no-confirm --precision 1000% --store ";
  for (const char* stream : {"2>/dev/full", "2>&-", ">/dev/full", ">&-"}) {
    std::filesystem::remove(folder.path() / "p.db");
    const ProcessResult result = shell(tune + "p.db --wisdom w " + stream);
    const bool reported = std::string(stream).starts_with("2");
    EXPECT_EQ(result.signal, 0) << stream << result.err;
    EXPECT_EQ(result.exit_code, reported ? 0 : 1) << stream << result.err;
    EXPECT_EQ(reported, !result.out.empty()) << stream;
    EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), std::size_t{kConfigurations}) << stream;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "w" / "work.wisdom")) << stream;
    std::filesystem::remove_all(folder.path() / "w");
  }
  EXPECT_EQ(shell("show nothing.db 2>/dev/full").exit_code, 2) << "and no abort, where nobody hears why";
  // an answer longer than a pipe's buffer in the program, whose reader goes at once
  folder.write("long.toml", simulated_problem(400));
  const ProcessResult cut = shell(
      "tune long.toml --device sim:a100 --strategy brute_force --no-confirm --store long.db --top 400 --wisdom w | "
      "true; exit ${PIPESTATUS[0]}");
  EXPECT_THAT(cut.exit_code, ::testing::AnyOf(1, 128 + SIGPIPE)) << cut.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "w")) << "the winner is kept, whoever reads the answer";
}

TEST_F(Faults, NoThreadsAreNoAbort) {
  TemporaryFolder folder;
  std::string problem = simulated_problem(20);
  problem.insert(0, "restrictions = [\"x != 3\", \"x < 19\", \"x % 7 != 0\"]\n");
  folder.write("p.toml", problem);
  for (const int nth : {1, 2, 3}) {
    const std::string fault = fmt::format("call=thread,nth={},error=11", nth);
    faulty(folder, fault,
           {"tune", "p.toml", "--device", "sim:a100,sim:k20c,sim:h100", "--strategy", "brute_force", "--no-confirm",
            "--no-store"});
    faulty(folder, fault, {"space", "p.toml", "--explain"});
  }
  EXPECT_GT(fired, 1);
}

/// One request of the page's server: what has come of its answer when nothing more does for a while.
std::string ask(const std::string& url, const std::string& target) {
  const auto colon = url.find(':', 7), slash = url.find('/', 7);
  const int port = std::stoi(url.substr(colon + 1, slash - colon - 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{0, 400'000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string answer;
  const std::string request =
      fmt::format("GET {}{}token={} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", target,
                  target.find('?') == std::string::npos ? '?' : '&', url.substr(url.find("token=") + 6), port);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char bytes[65536];
    for (ssize_t n; answer.size() < 1'000'000 && (n = ::recv(descriptor, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(n));
  }
  ::close(descriptor);
  return answer;
}

TEST_F(Faults, ThePagesServerGoesOnServing) {
  std::vector<std::string> all{"call=accept,nth=1,error=24,times=2", "call=write,nth=2,error=105,path=socket",
                               "call=read,nth=1,error=0,stays", "call=read,nth=3,error=5,path=p.db,times=3",
                               "call=thread,nth=1,error=11"};
  for (const int nth : {1, 2, 3, 5}) {
    all.push_back(fmt::format("call=accept,nth={},error=12", nth));
    all.push_back(fmt::format("call=look,nth={},error=24,path=p.db", nth));
    all.push_back(fmt::format("call=open,nth={},error=24,path=p.db", nth));
    all.push_back(fmt::format("call=read,nth={},error=5,path=p.db", nth));
    all.push_back(fmt::format("call=read,nth={},error=104,path=socket", nth));
    all.push_back(fmt::format("call=write,nth={},error=32,path=socket", nth));
    all.push_back(fmt::format("call=mmap,nth={},error=12,path=p.db", nth));
  }
  all.push_back("call=write,nth=1,error=0,stays");
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(kConfigurations));
  ASSERT_EQ(ergotune(folder, {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm",
                              "--precision", "1000%", "--store", "p.db"})
                .exit_code,
            0);
  for (const std::string& fault : chosen_faults(all, 12)) {
    std::filesystem::remove(folder.path() / "out");
    const Fault shim(folder, fault);
    ChildProcess server = start_ergotune(folder, {"watch", "p.db", "--json"});
    std::string line;
    std::optional<int> ended;
    for (int i = 0; i < 2000 && !ended && !line.ends_with('}'); ++i, ended = server.wait(0.01))
      std::getline(std::ifstream(folder.path() / "out"), line);
    const auto words = [&] { return read_file(folder.path() / "err").value_or(""); };
    if (ended) {  // it cannot begin: said
      ++refused;
      EXPECT_TRUE(WIFEXITED(*ended) && WEXITSTATUS(*ended) != 0) << fault << words();
      EXPECT_EQ(lines_of(words(), "ergotune: "), 1u) << fault << words();
    } else {
      ++survived;
      ASSERT_TRUE(line.ends_with('}')) << fault << words();
      const std::string url = nlohmann::json::parse(line).at("url");
      for (const char* target :
           {"/", "/api/sessions", "/api/session/1", "/api/session/1/findings", "/events?session=1"})
        ask(url, target);
      std::string answer;  // what failed has failed: now it answers
      for (int i = 0; i < 40 && answer.find("\"provenance\"") == std::string::npos; ++i)
        answer = ask(url, "/api/sessions");
      EXPECT_THAT(answer, HasSubstr("200 OK")) << fault << words();
      server.kill(SIGTERM);
      ended = server.wait(20);
      EXPECT_TRUE(ended && WIFEXITED(*ended) && WEXITSTATUS(*ended) == 0) << fault << words();
      EXPECT_LE(lines_of(words(), ""), 2u) << fault << words();
    }
    fired += shim.fired();
  }
  EXPECT_GT(fired, 1);
}

/// Nobody can be let in at all, for as long as it lives: it neither spins nor fills the disk with words, and ends when
/// it is told.
TEST_F(Faults, APageWithoutDescriptorsIsQuiet) {
  TemporaryFolder folder;
  folder.write("p.toml", simulated_problem(20));
  ASSERT_EQ(ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--no-confirm", "--store", "p.db"}).exit_code,
            0);
  const Fault shim(folder, "call=accept,nth=1,error=24,stays");
  ChildProcess server = start_ergotune(folder, {"watch", "p.db", "--json"});
  std::string line;
  for (int i = 0; i < 2000 && !line.ends_with('}'); ++i, ::usleep(10'000))
    std::getline(std::ifstream(folder.path() / "out"), line);
  ask(nlohmann::json::parse(line).at("url"), "/");
  server.kill(SIGTERM);
  const auto ended = server.wait(30);
  EXPECT_TRUE(ended && WIFEXITED(*ended) && WEXITSTATUS(*ended) == 0);
  EXPECT_LE(shim.fired(), 20);
  const std::string words = read_file(folder.path() / "err").value_or("");
  EXPECT_EQ(lines_of(words, "note: the page accepts no connection for now: Too many open files"), 1u)
      << words.substr(0, 1000);
  EXPECT_EQ(lines_of(words, ""), 1u) << words.substr(0, 1000);
  fired += shim.fired();
}

TEST_F(Faults, ASessionGoesOnWithoutItsPage) {
  std::vector<std::string> all{
      "call=look,nth=1,error=24,path=p.db,process=--until,stays", "call=write,nth=1,error=5,process=--until",
      "call=read,nth=1,error=5,path=p.db,process=--until,stays", "call=pipe,nth=1,error=24,process=--until,stays"};
  for (const int nth : {1, 2, 3, 4, 5}) {
    all.push_back(fmt::format("call=pipe,nth={},error=24,process=p.toml", nth));
    all.push_back(fmt::format("call=fork,nth={},error=11,process=p.toml", nth));
  }
  for (const std::string& fault : chosen_faults(all, 6)) {
    TemporaryFolder folder;
    folder.write("p.toml", simulated_problem(20));
    const ProcessResult result = faulty(folder, fault,
                                        {"tune", "p.toml", "--device", "sim:a100", "--strategy", "brute_force",
                                         "--no-confirm", "--store", "p.db", "--watch", "--json"});
    EXPECT_EQ(result.exit_code, 0) << fault << result.err;
    EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), 20u) << fault;
  }
  EXPECT_GT(fired, 1);
}

TEST_F(Faults, NoClockStaysSetWhateverFails) {
  std::vector<std::string> all;
  for (const int nth : {1, 2, 3, 5, 8}) {
    for (const char* call : {"write,error=28", "fsync,error=5", "open,error=28", "rename,error=5"})
      all.push_back(fmt::format("call={},nth={},path=state", call, nth));
    all.push_back(fmt::format("call=fork,nth={},error=11", nth));
    all.push_back(fmt::format("call=pipe,nth={},error=24", nth));
    all.push_back(fmt::format("call=write,nth={},error=5,path=cpufreq,process=tune", nth));
    all.push_back(fmt::format("call=write,nth={},error=5,path=cpufreq,process=guardian", nth));
    all.push_back(fmt::format("call=open,nth={},error=24,process=guardian", nth));
  }
  all.push_back("call=write,nth=1,error=0,stays");
  all.push_back("call=read,nth=1,error=0,stays");
  for (const std::string& fault : chosen_faults(all, 9)) {
    TemporaryFolder folder;
    control_trees::Tree tree;
    control_trees::add_cpufreq(tree);
    const auto before = tree.contents();
    const std::map<std::string, std::string> environment{{"ERGOTUNE_SYSFS_ROOT", tree.root().string()},
                                                         {"ERGOTUNE_STATE_DIR", (folder.path() / "state").string()},
                                                         {"ERGOTUNE_HELPER_SOCKET", "/nowhere"}};
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::string problem = counting_problem(1);
    problem.insert(problem.find("[kernel]"), "[execution]\ncore_clock_mhz = [800, 2000, 3600]\n");
    folder.write("p.toml", problem);
    const ProcessResult result = faulty(folder, fault,
                                        {"tune", "p.toml", "--device", "host", "--strategy", "brute_force",
                                         "--no-confirm", "--no-store", "--json", "--precision", "1000%"});
    if (tree.contents() != before) {  // what could not be put back is said, and a whole machine puts it back
      EXPECT_NE(result.exit_code, 0) << fault << result.out;
      EXPECT_THAT(result.err, HasSubstr("clocks restore")) << fault;
      const ProcessResult restored = ergotune(folder, {"clocks", "restore"}, 60);
      EXPECT_EQ(restored.exit_code, 0) << fault << restored.err;
    }
    EXPECT_EQ(tree.contents(), before) << fault << "\n" << result.err;
    for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  }
  EXPECT_GT(fired, 3);
}

}  // namespace
}  // namespace ergotune::test
