// The guardian as a process: what it says and does for a session that asks, for one that is gone, and what it has of
// its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/sessions.hpp"

namespace ergotune {
namespace {

using control_trees::kTegraGpu;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
constexpr double kPatience = 60;  // s, on a machine with other things to do

/// A Jetson whose clock was changed, with the journal of the session that did it.
struct Guardians : Sessions {
  std::unique_ptr<Control> control;
  std::optional<StateFolder> folder;
  void SetUp() override {
    Sessions::SetUp();
    control = open_control("tegra", environment);
    folder = StateFolder::open(environment.state_folder);
    Journal journal;
    journal.device = journal.reopen_id = "tegra";
    journal.device_key = control->device_key();
    journal.boot_id = boot_id();
    journal.steps = control->snapshot();
    folder->write(journal);
    ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1020).ok());
  }
  /// One of its files cannot be put back.
  void break_a_file() const {
    std::filesystem::remove(tree.real(std::string(kTegraGpu) + "/min_freq"));
    std::filesystem::create_directory(tree.real(std::string(kTegraGpu) + "/min_freq"));
  }
  std::string log() const { return read_file(environment.state_folder / "guardian.log").value_or(""); }
};

/// One that is started as a session starts it, and spoken with by hand.
struct Spoken {
  std::optional<guardian::Stream> stream;
  std::optional<ChildProcess> process;
  Spoken(const Guardians& test, pid_t session, const std::string& key, const std::string& attempts = "1") {
    const SocketPair sockets = make_socket_pair();
    const std::vector<std::string> strings{own_program(),     "test-guardian",
                                           "--session",       std::to_string(session),
                                           "--session-ticks", std::to_string(process_start_ticks(session)),
                                           "--control",       "tegra",
                                           "--key",           key,
                                           "--state",         test.environment.state_folder.string(),
                                           "--sysfs-root",    test.environment.sysfs_root.string(),
                                           "--attempts",      attempts};
    process = ChildProcess::start(strings, {}, sockets.theirs);
    ::close(sockets.theirs);
    stream.emplace(guardian::kKind, sockets.ours, sockets.ours);
  }
  guardian::Message first() { return stream->receive(kPatience).value(); }
  int exit_code() {
    const auto status = process->wait(kPatience);
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }
};

TEST_F(Guardians, WriteDownWhatTheyCouldNotPutBack) {
  Spoken guardian(*this, 1 << 22, control->device_key());  // there is no such process
  break_a_file();
  EXPECT_TRUE(std::holds_alternative<guardian::Ready>(guardian.first()));
  EXPECT_EQ(guardian.exit_code(), 1);
  EXPECT_THAT(log(), AllOf(HasSubstr("could be restored"), HasSubstr("\n  "), HasSubstr("min_freq"),
                           Not(HasSubstr("\n  sysfs"))));
  EXPECT_EQ(std::filesystem::exists(folder->journal_file(control->device_key())), true);
}

TEST_F(Guardians, RefuseADeviceThatIsAnotherOne) {
  Spoken guardian(*this, ::getpid(), "somewhere else");
  EXPECT_THAT(std::get<guardian::Refused>(guardian.first()).message, HasSubstr("another device"));
  EXPECT_EQ(guardian.exit_code(), 2);
  EXPECT_NE(tree.contents(), before);
}

/// As a session has it.
struct GuardianOfOurs : Guardians {
  std::optional<DeviceLock> lock;
  GuardianProcess guardian;
  RestoreReport report;
  void SetUp() override {
    Guardians::SetUp();
    lock = DeviceLock::try_take(*folder, control->device_key());
    ASSERT_TRUE(lock);
  }
  void start(double timeout = kPatience) { guardian.start(*control, *folder, *lock, timeout, 1); }
  std::filesystem::path open_file(int descriptor) const {
    return std::filesystem::read_symlink("/proc/" + std::to_string(guardian.pid()) + "/fd/" +
                                         std::to_string(descriptor));
  }
};

TEST_F(GuardianOfOurs, HasTheSocketTheLockAndNothingElse) {
  // files that a program of somebody else's leaves open for its children
  std::vector<int> ours;
  std::ofstream(tree.root() / "ours") << "x";
  while (ours.empty() || ours.back() < 8) ours.push_back(::open((tree.root() / "ours").c_str(), O_RDONLY));
  start();
  for (const int descriptor : ours) ::close(descriptor);
  for (const int standard : {0, 1, 2}) EXPECT_EQ(open_file(standard), "/dev/null") << standard;
  EXPECT_THAT(open_file(3).string(), HasSubstr("socket"));
  EXPECT_EQ(open_file(4), folder->lock_file(control->device_key()));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(guardian.pid()) + "/fd")) {
    std::error_code gone;
    EXPECT_NE(std::filesystem::read_symlink(entry.path(), gone), tree.root() / "ours") << entry.path();
  }
  EXPECT_EQ(::getsid(guardian.pid()), guardian.pid());
  EXPECT_TRUE(guardian.finish(report, kPatience));
}

TEST_F(GuardianOfOurs, ThatSaysNotThatItIsReadyIsNone) {
  std::filesystem::remove_all(tree.real(kTegraGpu));
  EXPECT_THAT(error_of([&] { start(); }), AllOf(HasSubstr("no guardian can be started: "), HasSubstr("tegra")));
  EXPECT_FALSE(guardian.alive());
  EXPECT_LT(guardian.pid(), 0);
}

// Without a process to be had nothing opens, and nothing stays open. Runs itself below tests/fakes/faults.
TEST_F(GuardianOfOurs, WithoutAProcessThereIsNone) {
  if (!::getenv("ERGOTUNE_FAULT")) {
    ProcessOptions options;
    options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"},
                           {"ERGOTUNE_FAULT", "call=fork,error=11,stays"}};
    options.timeout = kPatience;
    const auto result =
        run_process({own_program(), "--gtest_filter=GuardianOfOurs.WithoutAProcessThereIsNone"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return;
  }
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto were = open_files();
  EXPECT_THAT(error_of([&] { start(); }), HasSubstr("Resource temporarily unavailable"));
  EXPECT_EQ(open_files(), were);
}

using ::testing::SizeIs;

struct RestoreApart : ::testing::Test {
  fake_nvml::FakeNvml nvml{"generation=hopper"};
  control_trees::Tree place;
  ControlEnvironment environment;
  std::filesystem::path file;

  // A GPU with everything changed, and the journal that a session left.
  void SetUp() override {
    nvml.use_here();
    environment.nvml_library = fake_nvml::FakeNvml::library();
    environment.state_folder = place.root() / "state";
    auto control = open_control("nvml:0", environment);
    Journal journal;
    journal.device = "nvml:0";
    journal.reopen_id = control->reopen_id();
    journal.device_key = control->device_key();
    journal.boot_id = boot_id();
    journal.steps = control->snapshot();
    const auto folder = StateFolder::open(environment.state_folder);
    folder.write(journal);
    file = folder.journal_file(journal.device_key);
    EXPECT_TRUE(control->set(ControlQuantity::core_clock_mhz, 990).ok());
    EXPECT_TRUE(control->set(ControlQuantity::memory_clock_mhz, 1593).ok());
    EXPECT_TRUE(control->set(ControlQuantity::power_limit_w, 300).ok());
  }
  void TearDown() override { nvml.clear_faults(); }
  RestoreReport restore() {
    RestoreOptions round;
    round.attempts = 2;
    round.patience = 1;
    return restore_in_process(StateFolder::open(environment.state_folder), file, environment, round);
  }
  static std::vector<RestoreOutcome> failed(const RestoreReport& report) {
    std::vector<RestoreOutcome> list;
    for (const auto& outcome : report.outcomes)
      if (!outcome.result.ok()) list.push_back(outcome);
    return list;
  }
};

TEST_F(RestoreApart, PutsEverythingBack) {
  const auto report = restore();
  EXPECT_TRUE(report.complete) << description_of(report);
  EXPECT_EQ(nvml.gpu().locked, 0);
  EXPECT_EQ(nvml.gpu().memory_locked, 0);
  EXPECT_EQ(nvml.gpu().power_limit_mw, 700000u);
  EXPECT_FALSE(std::filesystem::exists(file));
  for (const auto& call : nvml.setter_calls())
    if (std::string(call.function).find("Reset") != std::string::npos) {
      EXPECT_NE(call.pid, getpid()) << "in a process of its own";
    }
}

// Without a process to be had it is done here, and no other child is waited for. Runs itself below tests/fakes/faults.
TEST_F(RestoreApart, WithoutAProcessItIsDoneHere) {
  if (!::getenv("ERGOTUNE_FAULT")) {
    ProcessOptions options;
    options.environment = {{"LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so"},
                           {"ERGOTUNE_FAULT", "call=fork,nth=2,error=11,stays"}};
    options.timeout = 40;
    const auto result =
        run_process({own_program(), "--gtest_filter=RestoreApart.WithoutAProcessItIsDoneHere"}, options);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return;
  }
  const auto other = ChildProcess::start({"/bin/sleep", "100"});
  const auto report = restore();
  EXPECT_TRUE(report.complete) << description_of(report);
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(RestoreApart, ACallThatAbortsCostsItsStepOnly) {
  nvml.add_fault("nvmlDeviceResetGpuLockedClocks", -2);
  const auto report = restore();
  EXPECT_FALSE(report.complete);
  ASSERT_THAT(failed(report), SizeIs(1)) << description_of(report);
  EXPECT_THAT(description_of(report), HasSubstr("ended the process"));
  EXPECT_EQ(nvml.gpu().locked, 1);
  EXPECT_EQ(nvml.gpu().memory_locked, 0);
  EXPECT_EQ(nvml.gpu().power_limit_mw, 700000u);
  EXPECT_TRUE(std::filesystem::exists(file)) << "what is left is still known";
  nvml.clear_faults();
  EXPECT_TRUE(restore().complete);
  EXPECT_EQ(nvml.gpu().locked, 0);
}

TEST_F(RestoreApart, ACallThatHangsCostsItsStepOnlyAndLittleTime) {
  nvml.add_fault("nvmlDeviceResetGpuLockedClocks", 0, 0, 0, 1000);
  const double begin = host_seconds();
  const auto report = restore();
  EXPECT_LT(host_seconds() - begin, 20);
  EXPECT_FALSE(report.complete);
  ASSERT_THAT(failed(report), SizeIs(1)) << description_of(report);
  EXPECT_THAT(description_of(report), HasSubstr("did not return"));
  while (::waitpid(-1, nullptr, 0) > 0) {  // what hung is not left behind
  }
  EXPECT_THAT(description_of(report), HasSubstr("ergotune clocks restore"));
  EXPECT_EQ(nvml.gpu().memory_locked, 0);
  EXPECT_EQ(nvml.gpu().power_limit_mw, 700000u);
}

TEST_F(RestoreApart, ADriverThatDoesNotOpenAtAllIsSaid) {
  nvml.add_fault("nvmlInit_v2", 0, 0, 0, 1000);
  const double begin = host_seconds();
  const auto report = restore();
  EXPECT_LT(host_seconds() - begin, 20);
  EXPECT_FALSE(report.complete);
  EXPECT_THAT(description_of(report), HasSubstr("does not open"));
  EXPECT_TRUE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace ergotune
