// A driver that hangs or aborts while a journal is carried out: that step is lost, no other, and no caller waits for
// ever.
#include "power/guardian/guardian_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
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
