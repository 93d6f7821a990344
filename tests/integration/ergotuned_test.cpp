// ergotuned as a process, driven through its socket as the command drives it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "integration/support/command.hpp"
#include "power/controls/control_backends.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian_host.hpp"
#include "power/helper/helper_protocol.hpp"

namespace ergotune {
namespace {

using control_trees::kTegraGpu;
using test::eventually;
using ::testing::HasSubstr;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

// A client that sets clocks through the helper until it is killed.
int run_client(const std::vector<std::string>& arguments) {
  std::string why_not;
  auto session = ControlSession::open(usable_control("tegra", &why_not));
  session->set(kCore, 1020);
  std::ofstream(arguments.at(0)) << "set";
  pause();
  return 0;
}

const guardian_host::Host kHost({{"helper-client", run_client}});

struct Ergotuned : ::testing::Test {
  control_trees::Tree tree, place;
  std::map<std::string, std::string> before;
  std::optional<ChildProcess> daemon;
  std::string socket = (place.root() / "run/ergotuned.sock").string();
  std::string policy = (place.root() / "policy.toml").string();
  std::string log = (place.root() / "audit.log").string();

  void SetUp() override {
    control_trees::add_tegra(tree);
    before = tree.contents();
    std::filesystem::create_directory(place.root() / "run");
    std::ofstream(policy) << "lease_seconds = 1\n[[allow]]\nusers = [" << geteuid()
                          << "]\ndevices = [\"tegra\"]\ncore_clock_mhz = [400, 1100]\n";
    chmod(policy.c_str(), 0644);
    setenv("ERGOTUNE_SYSFS_ROOT", tree.root().c_str(), 1);
    setenv("ERGOTUNE_STATE_DIR", (place.root() / "own-state").c_str(), 1);
    setenv("ERGOTUNE_HELPER_SOCKET", socket.c_str(), 1);
    setenv("ERGOTUNE_NVML", "/nowhere", 1);
  }
  std::vector<std::string> arguments() const {
    return {ERGOTUNE_BINARY_DIR "/ergotuned",
            "--policy",
            policy,
            "--socket",
            socket,
            "--audit-log",
            log,
            "--state-dir",
            (place.root() / "state").string(),
            "--sysfs-root",
            tree.root().string(),
            "--nvml",
            "/nowhere"};
  }
  void start() {
    daemon.emplace(ChildProcess::start(arguments()));
    ASSERT_TRUE(eventually([&] { return audit().find("listens") != std::string::npos; })) << audit();
  }
  std::string audit() const {
    std::ifstream file(log);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string clock() { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
  int dial() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket.c_str());
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const timeval patience{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
};

TEST_F(Ergotuned, IsUsedWhenItIsThereAndPutsBackWhatItSet) {
  start();
  std::string why_not;
  auto control = usable_control("tegra", &why_not);
  ASSERT_NE(control, nullptr) << why_not;
  EXPECT_TRUE(control->has_remote_guardian());
  EXPECT_EQ(control->range(kCore).high, 1020) << "narrowed to the policy";
  auto session = ControlSession::open(std::move(control));
  EXPECT_TRUE(session->apply({{kCore, 510}}).ok());
  EXPECT_EQ(clock(), "510000000");
  EXPECT_EQ(session->apply({{kCore, 1300.5}}).status, ControlStatus::invalid_value);
  // The lease lives one second: it is renewed while a long measurement runs.
  usleep(2500000);
  EXPECT_EQ(clock(), "510000000");
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(tree.contents(), before);
  EXPECT_THAT(audit(), HasSubstr("set core_clock_mhz of tegra to 510: ok"));
}

TEST_F(Ergotuned, ShowsWhatIsPermittedAndWhoHasTheLease) {
  start();
  const auto status = [&](const char* field) {
    const ProcessResult result =
        run_process({test::ergotune_program(), "clocks", "status", "--control", "tegra", "--json"});
    return nlohmann::json::parse(result.out).at("devices").at(0).at(field);
  };
  EXPECT_EQ(status("core_clock_mhz").at("max"), 1020) << "by the policy";
  EXPECT_TRUE(status("power_limit_w").is_null()) << "it is not in the policy";
  EXPECT_TRUE(status("lease").is_null());
  std::string why_not;
  auto session = ControlSession::open(usable_control("tegra", &why_not));
  session->set(kCore, 510);
  EXPECT_THAT(status("lease").get<std::string>(), HasSubstr(fmt::format("pid {}", ::getpid())));
  EXPECT_THAT(status("lease").get<std::string>(), HasSubstr("510"));
}

TEST_F(Ergotuned, PutsBackWhenItsClientIsKilled) {
  start();
  const auto flag = (place.root() / "client-has-set").string();
  auto client = ChildProcess::start({own_program(), "helper-client", flag});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(flag); }));
  EXPECT_EQ(clock(), "1020000000");
  client.kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
}

TEST_F(Ergotuned, PutsBackWhenItsClientHangs) {
  start();
  const auto flag = (place.root() / "client-has-set").string();
  auto client = ChildProcess::start({own_program(), "helper-client", flag});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(flag); }));
  client.kill(SIGSTOP);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; })) << "no sign of life for the lease's time";
}

TEST_F(Ergotuned, ItsGuardianPutsBackWhenItIsKilledItself) {
  start();
  auto session = ControlSession::open(usable_control("tegra"));
  ASSERT_TRUE(session->set(kCore, 510).ok());
  daemon->kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
  EXPECT_THAT(session->set(kCore, 408).message, HasSubstr("ergotuned has gone"));
}

TEST_F(Ergotuned, PutsBackWhenItIsStopped) {
  start();
  auto session = ControlSession::open(usable_control("tegra"));
  ASSERT_TRUE(session->set(kCore, 510).ok());
  daemon->kill(SIGTERM);
  ASSERT_TRUE(daemon->wait(20));
  EXPECT_EQ(tree.contents(), before);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(Ergotuned, ASecondSessionIsRefused) {
  start();
  auto first = ControlSession::open(usable_control("tegra"));
  EXPECT_THAT(error_of([&] { ControlSession::open(usable_control("tegra")); }), HasSubstr(std::to_string(getpid())));
}

TEST_F(Ergotuned, AUserWhoIsNotInThePolicyIsReported) {
  std::ofstream(policy) << "[[allow]]\nusers = [4242]\ndevices = [\"*\"]\ncore_clock_mhz = [400, 1100]\n";
  start();
  std::string reason;
  const auto environment = ControlEnvironment::from_environment();
  std::unique_ptr<Control> direct;
  EXPECT_EQ(open_helper_control(kTegraGpu, environment, reason, direct), nullptr);
  EXPECT_THAT(reason, HasSubstr("policy"));
  // Without the helper there are direct calls, where they are permitted (root), or the reason why not.
  std::string why_not;
  const auto control = usable_control("tegra", &why_not);
  EXPECT_TRUE(control ? !control->has_remote_guardian() : why_not.find("policy") != std::string::npos);
}

TEST_F(Ergotuned, SurvivesGarbageOversizedAndReplayedMessages) {
  start();
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const int fd = dial();
    std::string hello(helper::kMaxMessage, '\0');
    const auto n = recv(fd, hello.data(), hello.size(), 0);
    helper::Header header;
    ASSERT_GT(n, 0);
    ASSERT_TRUE(helper::decode_answer(std::string_view(hello.data(), static_cast<std::size_t>(n)), header));
    std::string bytes;
    if (i % 4 == 0)
      bytes.assign(helper::kMaxMessage + 1 + random.below(10000), 'x');
    else if (i % 4 == 1) {
      for (auto k = random.below(300); k > 0; --k) bytes += static_cast<char>(random());
      bytes += '!';
    } else
      bytes = helper::encode(header.nonce, 1, helper::Request(helper::ListRequest{}));
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    if (i % 4 >= 2) {
      EXPECT_GT(recv(fd, hello.data(), hello.size(), 0), 0);
      (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);  // the same again
    }
    EXPECT_EQ(recv(fd, hello.data(), hello.size(), 0), 0) << "closed without an answer";
    close(fd);
  }
  EXPECT_TRUE(ControlSession::open(usable_control("tegra"))->set(kCore, 510).ok()) << "and it serves the next client";
  EXPECT_THAT(audit(), HasSubstr("replayed"));
  EXPECT_THAT(audit(), HasSubstr("more than 16384 bytes"));
}

TEST_F(Ergotuned, RefusesFoldersAndFilesThatOthersCouldHaveMade) {
  const auto refused = [&](const char* description) {
    const auto result = run_process(arguments(), {.environment = {}, .folder = "", .input = "", .timeout = 20});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(description));
  };
  chmod(policy.c_str(), 0666);
  refused("written by others");
  chmod(policy.c_str(), 0644);
  std::filesystem::rename(policy, policy + ".real");
  std::filesystem::create_symlink(policy + ".real", policy);
  refused("is a link");
  std::filesystem::remove(policy);
  std::filesystem::rename(policy + ".real", policy);
  std::ofstream(place.root() / "precious") << "text";
  std::filesystem::create_symlink(place.root() / "precious", socket);
  refused("not a socket");
  EXPECT_EQ(place.get("/precious"), "text");
  std::filesystem::remove(socket);
  chmod((place.root() / "run").c_str(), 0777);
  refused("others can write");
  chmod((place.root() / "run").c_str(), 0755);
  start();
  refused("another ergotuned");
}

TEST_F(Ergotuned, TheClientRefusesASocketThatIsALink) {
  start();
  const auto link = (place.root() / "link.sock").string();
  std::filesystem::create_symlink(socket, link);
  auto environment = ControlEnvironment::from_environment();
  environment.helper_socket = link;
  std::string reason;
  std::unique_ptr<Control> direct;
  EXPECT_EQ(open_helper_control(kTegraGpu, environment, reason, direct), nullptr);
  EXPECT_THAT(reason, HasSubstr("link"));
}

TEST_F(Ergotuned, HonoursNoEnvironmentVariable) {
  control_trees::Tree other;
  control_trees::add_tegra(other);
  setenv("ERGOTUNE_SYSFS_ROOT", other.root().c_str(), 1);
  setenv("ERGOTUNE_STATE_DIR", (place.root() / "elsewhere").c_str(), 1);
  setenv("ERGOTUNE_FORBID_CONTROLS", "1", 1);
  start();
  unsetenv("ERGOTUNE_FORBID_CONTROLS");
  auto session = ControlSession::open(usable_control("tegra"));
  ASSERT_TRUE(session->control().has_remote_guardian());
  ASSERT_TRUE(session->set(kCore, 510).ok());
  EXPECT_EQ(clock(), "510000000") << "the root of its own command line";
  EXPECT_FALSE(std::filesystem::exists(place.root() / "elsewhere"));
}

TEST_F(Ergotuned, ReadsThePolicyAgainAndKeepsTheOldOneWhenTheNewIsWrong) {
  start();
  std::ofstream(policy) << "lease_secnds = 3";
  daemon->kill(SIGHUP);
  EXPECT_TRUE(eventually([&] { return audit().find("stays as it was") != std::string::npos; }));
  EXPECT_TRUE(ControlSession::open(usable_control("tegra"))->set(kCore, 510).ok());
}

TEST_F(Ergotuned, WhatItsClientSetIsDoubtedWhenItHasGone) {
  start();
  auto session = ControlSession::open(usable_control("tegra"));
  ASSERT_TRUE(session->set(kCore, 510).ok());
  EXPECT_TRUE(session->check().ok());
  daemon->kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return !session->check().ok(); }));
  EXPECT_THAT(session->control().lost(), HasSubstr("ergotuned has gone"));
}

TEST_F(Ergotuned, SilentConnectionsShutNobodyOut) {
  start();
  std::vector<int> silent;
  for (int i = 0; i < 16; ++i) silent.push_back(dial());
  // Of others as many as there is room for, where this may be other users.
  std::vector<pid_t> others;
  for (uid_t user = 40001; ::geteuid() == 0 && user <= 40003; ++user) {
    for (const auto& folder : {place.root(), place.root() / "run"}) chmod(folder.c_str(), 0755);
    others.push_back(fork());
    if (others.back() != 0) continue;
    if (setuid(user) != 0) _exit(1);
    for (int i = 0; i < 16; ++i) dial();
    pause();
  }
  usleep(200000);
  std::string why_not;
  const auto control = usable_control("tegra", &why_not);
  ASSERT_NE(control, nullptr);
  EXPECT_TRUE(control->has_remote_guardian()) << why_not;
  for (const int fd : silent) close(fd);
  for (const pid_t pid : others) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST_F(Ergotuned, AStateFolderThatOthersCanWriteIsRefusedAtTheStart) {
  std::filesystem::create_directory(place.root() / "state");
  chmod((place.root() / "state").c_str(), 0777);
  const auto result = run_process(arguments(), {.environment = {}, .folder = "", .input = "", .timeout = 20});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("state folder"));
}

TEST_F(Ergotuned, ThePolicyThatRevokesEndsARunningLease) {
  start();
  auto session = ControlSession::open(usable_control("tegra"));
  ASSERT_TRUE(session->set(kCore, 510).ok());
  std::ofstream(policy) << "[[allow]]\nusers = [4242]\ndevices = [\"tegra\"]\ncore_clock_mhz = [400, 1100]\n";
  daemon->kill(SIGHUP);
  EXPECT_TRUE(eventually([&] { return tree.contents() == before; }));
  EXPECT_FALSE(session->check().ok());
}

TEST_F(Ergotuned, GoesOnServingWhateverFailsBelowIt) {
  std::vector<std::string> all;
  for (const int nth : {1, 2, 3, 5})
    for (const char* call :
         {"write,error=28,path=state", "fsync,error=5,path=state", "rename,error=5,path=state", "open,error=24",
          "fork,error=11", "look,error=24", "pipe,error=24", "read,error=5,path=socket", "write,error=105,path=socket",
          "accept,error=24,times=2", "write,error=5,path=max_freq", "write,error=0,path=audit,stays", "thread,error=11",
          "write,error=28,path=audit"})
      all.push_back(fmt::format("call={},nth={}", call, nth));
  const test::TemporaryFolder folder;
  int fired = 0, served = 0, refused = 0;
  for (const std::string& fault : test::chosen_faults(all, 9)) {
    std::filesystem::remove(log);
    const test::Fault shim(folder, fault);
    daemon.emplace(ChildProcess::start(arguments()));
    std::optional<int> ended;
    const bool begun = eventually([&] { return (ended = daemon->wait(0)) || std::filesystem::exists(socket); });
    bool set = false;  // what failed once has failed: its next clients are served
    for (const double end = host_seconds() + 20; begun && !ended && !set && host_seconds() < end; usleep(10'000)) {
      try {
        auto control = usable_control("tegra");
        if (!control || !control->has_remote_guardian()) continue;
        auto session = ControlSession::open(std::move(control));
        set = session->set(kCore, 510).ok();
        set = session->finish().complete && set;
      } catch (const Error&) {
      }
    }
    served += set;
    refused += ended.has_value();
    EXPECT_TRUE(set || (ended && WIFEXITED(*ended) && WEXITSTATUS(*ended) <= 2)) << fault << "\n" << audit();
    EXPECT_TRUE(eventually([&] { return tree.contents() == before; })) << fault << "\n" << audit();
    if (!ended) daemon->kill(SIGTERM);
    if (!ended) ended = daemon->wait(20);
    EXPECT_TRUE(ended && WIFEXITED(*ended)) << fault;
    EXPECT_EQ(tree.contents(), before) << fault;
    fired += shim.fired();
  }
  take_failed_restores();
  EXPECT_GT(fired, 3);
  std::printf("%d calls failed; %d commands went on, %d said why not\n", fired, served, refused);
}

// What runs as root is to link the least: no database, no compiler, no driver (NVML is opened by its name when it is
// needed).
TEST(HelperProgram, LinksTheLeast) {
  const auto result = run_process({"readelf", "-d", ERGOTUNE_BINARY_DIR "/ergotuned"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream in(result.out);
  int libraries = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    ++libraries;
    const auto from = line.find('[');
    const std::string name = line.substr(from + 1, line.find(']') - from - 1);
    EXPECT_THAT(name,
                ::testing::MatchesRegex("lib(fmt|stdc..|m|gcc_s|c|dl|pthread|asan|ubsan|tsan)\\.so.*|ld-linux.*"));
  }
  EXPECT_GT(libraries, 2);
}

}  // namespace
}  // namespace ergotune
