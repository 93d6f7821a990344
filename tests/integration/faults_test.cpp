// A full disk, a broken one, no more processes or descriptors, calls that give less than was asked (tests/fakes/faults): nothing that was stored
// is lost or doubled, nothing stays set, and there is one message. In CI a part of the list; all of it with ERGOTUNE_ALL_FAULTS.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fakes/control_trees/control_trees.hpp"
#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using ::testing::HasSubstr;

constexpr int kConfigurations = 4;

std::vector<std::string> chosen(const std::vector<std::string>& all, std::size_t step) {
  if (std::getenv("ERGOTUNE_ALL_FAULTS")) return all;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
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
  ProcessResult faulty(const TemporaryFolder& folder, const std::string& fault, const std::vector<std::string>& arguments) {
    const auto log = folder.path() / "faults.log";
    ::setenv("LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so", 1);
    ::setenv("ERGOTUNE_FAULT", fault.c_str(), 1);
    ::setenv("ERGOTUNE_FAULT_LOG", log.c_str(), 1);
    const ProcessResult result = ergotune(folder, arguments, 120);
    for (const char* name : {"LD_PRELOAD", "ERGOTUNE_FAULT", "ERGOTUNE_FAULT_LOG"}) ::unsetenv(name);
    std::ifstream in(log);
    fired += static_cast<int>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
    std::filesystem::remove(log);
    EXPECT_FALSE(result.timed_out) << fault << " hangs: " << result.err;
    EXPECT_EQ(result.signal, 0) << fault << ": " << result.err;
    EXPECT_THAT(result.exit_code, ::testing::AnyOf(0, 1, 2)) << fault << ": " << result.err;
    if (result.exit_code == 0) {
      ++survived;
    } else {
      ++refused;
      EXPECT_EQ(lines_of(result.err, "ergotune: "), 1u) << fault << ": " << result.err;
    }
    return result;
  }
  ~Faults() override { std::printf("%d calls failed; %d commands went on, %d said why not\n", fired, survived, refused); }
};

TEST_F(Faults, AStoreLosesNothingAndASessionGoesOnAfterwards) {
  std::vector<std::string> all;
  for (const int nth : {1, 2, 4, 7, 12})
    for (const char* call : {"write,error=28", "write,error=5", "fsync,error=5", "open,error=28", "truncate,error=28", "mmap,error=12"})
      all.push_back(fmt::format("call={},nth={},path=p.db", call, nth));
  all.push_back("call=write,nth=3,error=28,path=p.db,stays");
  for (const std::string& fault : chosen(all, 4)) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const std::vector<std::string> tune{"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--json",
                                        "--precision", "10", "--store", "p.db"};
    const ProcessResult first = faulty(folder, fault, tune);
    const auto store = folder.path() / "p.db";
    std::map<std::string, std::vector<std::string>> kept;
    if (std::filesystem::exists(store) && std::filesystem::file_size(store) > 0 && first.exit_code == 0) kept = stored_rows(store);
    if (first.exit_code == 0) {
      EXPECT_EQ(kept.size(), std::size_t{kConfigurations}) << fault;
    }
    const auto document = json_of(ergotune(folder, tune));
    EXPECT_EQ(document["evaluated"].get<int>() + document["resumed"].get<int>(), kConfigurations) << fault;
    EXPECT_EQ(integrity(store), "ok") << fault;
    const auto rows = stored_rows(store);
    EXPECT_EQ(rows.size(), std::size_t{kConfigurations}) << fault;
    for (const auto& [configuration, statuses] : rows) EXPECT_EQ(statuses, std::vector<std::string>{"ok"}) << fault << configuration;
    for (const auto& [configuration, statuses] : kept) EXPECT_TRUE(rows.contains(configuration)) << fault << configuration;
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
  for (const std::string& fault : chosen(all, 4)) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const std::vector<std::string> tune{"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--json",
                                        "--precision", "10", "--store", "p.db"};
    faulty(folder, fault, tune);
    const auto document = json_of(ergotune(folder, tune));
    EXPECT_EQ(document["evaluated"].get<int>() + document["resumed"].get<int>(), kConfigurations) << fault;
    const auto rows = stored_rows(folder.path() / "p.db");  // of one session: it was found again
    EXPECT_EQ(rows.size(), std::size_t{kConfigurations}) << fault;
    for (const auto& [configuration, statuses] : rows) EXPECT_EQ(statuses, std::vector<std::string>{"ok"}) << fault << configuration;
  }
  EXPECT_GT(fired, 3);
}

TEST_F(Faults, ShortReadsAndWritesChangeNothing) {
  for (const char* call : {"read", "write"}) {
    TemporaryFolder folder;
    folder.write("p.toml", counting_problem(kConfigurations));
    const auto result = faulty(folder, fmt::format("call={},nth=1,error=0,stays", call),
                               {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--json", "--precision", "10",
                                "--store", "p.db"});
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
                               {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--json", "--precision", "10",
                                "--budget", "60s", "--store", "p.db"});
    ASSERT_EQ(result.exit_code, 0) << step << ": " << result.err;
    EXPECT_EQ(json_of(result)["statuses"]["ok"], kConfigurations) << step << result.out;
    EXPECT_EQ(stored_rows(folder.path() / "p.db").size(), std::size_t{kConfigurations});
  }
  EXPECT_GT(fired, 1);
}

/// The session and its workers stand still for a while, as when a lid is closed.
TEST_F(Faults, AMachineThatSleepsGoesOn) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(30));
  ChildProcess session = start_ergotune(folder, {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--precision", "10",
                                                 "--store", "p.db"});
  const auto store = folder.path() / "p.db";
  for (int i = 0; i < 6000 && (!std::filesystem::exists(store) || stored_rows(store).empty()); ++i) ::usleep(10'000);
  std::vector<pid_t> stopped{session.pid()};
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", session.pid()));
  for (pid_t child = 0; children >> child;) stopped.push_back(child);
  for (const pid_t pid : stopped) ::kill(pid, SIGSTOP);
  EXPECT_GE(stopped.size(), 2u) << "the session was over";
  ::usleep(2'500'000);
  for (const pid_t pid : stopped) ::kill(pid, SIGCONT);
  const auto status = session.wait(120);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
  const auto rows = stored_rows(store);
  EXPECT_EQ(rows.size(), 30u);
  for (const auto& [configuration, statuses] : rows) EXPECT_EQ(statuses, std::vector<std::string>{"ok"}) << configuration;
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
  for (const std::string& fault : chosen(all, 5)) {
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
    const ProcessResult result = faulty(folder, fault, {"tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--no-confirm", "--no-store",
                                                        "--json", "--precision", "10"});
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
