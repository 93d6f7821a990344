// The NVML control over the fake library: locked clocks, application clocks on old GPUs, limits,
// persistence mode, and every call failing in every way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "power/guardian/journal.hpp"
#include "power/nvml_controls.hpp"

namespace ergotune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kCore = ControlQuantity::core_clock_mhz;
constexpr auto kMemory = ControlQuantity::memory_clock_mhz;
constexpr auto kPower = ControlQuantity::power_limit_w;

TEST_F(NvmlControls, ListWhatTheGpuSupports) {
  auto control = open_control("nvml:1", environment);
  EXPECT_EQ(control->id(), "nvml:1");
  EXPECT_EQ(control->device_key(), fake().gpu(1).uuid);
  EXPECT_EQ(open_control(control->reopen_id(), environment)->id(), "nvml:1");
  const auto core = control->range(kCore);
  EXPECT_EQ(core.values.size(), 110u);
  EXPECT_EQ(core.low, 345);
  EXPECT_EQ(core.high, 1980);
  EXPECT_EQ(core.default_value, 1980);
  EXPECT_EQ(core.current, std::nullopt) << "locked clocks have no getter";
  EXPECT_EQ(control->range(kMemory).values.size(), 2u);
  const auto power = control->range(kPower);
  EXPECT_EQ(power.low, 200);
  EXPECT_EQ(power.high, 700);
  EXPECT_EQ(power.current, 700);
}

TEST_F(NvmlControls, SetAndPutBackEverything) {
  fake().gpu().power_limit_mw = 650000;  // not the default: it must be 650 W again, not 700
  const auto before = settings(fake().gpu());
  auto session = open();
  ASSERT_TRUE(session->apply({{kCore, 1410}, {kMemory, 1593}, {kPower, 300}}).ok());
  EXPECT_EQ(fake().gpu().locked_min, 1410u);
  EXPECT_EQ(fake().gpu().locked_max, 1410u);
  EXPECT_EQ(fake().gpu().memory_locked_max, 1593u);
  EXPECT_EQ(fake().gpu().power_limit_mw, 300000u);
  EXPECT_EQ(fake().gpu().persistence, 1) << "the driver must not forget the settings between two clients";
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(settings(fake().gpu()), before);
}

TEST_F(NvmlControls, ALockOfOthersOnAQuantityWeDoNotTouchStays) {
  fake().gpu().locked = 1;
  fake().gpu().locked_min = fake().gpu().locked_max = 1200;
  ASSERT_TRUE(open()->set(kPower, 300).ok());  // idle: the lock does not show, so the session opens
  EXPECT_EQ(fake().gpu().locked, 1);
}

TEST_F(NvmlControls, ALockInForceIsRefusedUnlessTheUserInsists) {
  fake().gpu().locked = 1;
  fake().gpu().locked_min = fake().gpu().locked_max = 1200;
  fake().set_activity(0.3);
  usleep(50000);
  EXPECT_THAT(error_of([&] { open(); }), AllOf(HasSubstr("locked"), HasSubstr("--take-over")));
  EXPECT_EQ(fake().gpu().locked, 1);
  EXPECT_THAT(open(true)->notes(), SizeIs(1));
}

TEST_F(NvmlControls, AnInvalidPairIsAResult) {
  start("ampere");  // at every memory clock but the highest, graphics clocks end at 420 MHz
  auto session = open();
  const auto result = session->apply({{kCore, 1410}, {kMemory, 405}});
  EXPECT_EQ(result.status, ControlStatus::invalid_value);
  EXPECT_THAT(result.message, AllOf(HasSubstr("1410"), HasSubstr("405"), HasSubstr("420")));
  EXPECT_EQ(fake().gpu().locked, 0) << "nothing is set of a pair that is refused";
  EXPECT_EQ(fake().gpu().memory_locked, 0);
  EXPECT_TRUE(session->apply({{kCore, 420}, {kMemory, 405}}).ok());
}

TEST_F(NvmlControls, OldGpusUseApplicationClocks) {
  start("pascal");
  fake().gpu().application_graphics = 1200;  // set by the administrator
  fake().gpu().application_clocks_set = 1;
  const auto before = settings(fake().gpu());
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1005).ok());
  EXPECT_EQ(fake().gpu().application_graphics, 1005u);
  EXPECT_EQ(fake().gpu().locked, 0);
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(settings(fake().gpu()), before);
}

TEST_F(NvmlControls, MemoryOfATuringFallsBackWhileItsCoreIsLocked) {
  start("turing");
  const auto before = settings(fake().gpu());
  auto session = open();
  ASSERT_TRUE(session->apply({{kCore, 900}, {kMemory, 405}}).ok()) << "the fake has no bound for this pair";
  EXPECT_EQ(fake().gpu().locked_max, 900u);
  EXPECT_EQ(fake().gpu().application_memory, 405u);
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(settings(fake().gpu()), before);
}

TEST_F(NvmlControls, WithoutPermissionTheStatusSaysWhatIsMissing) {
  fake().state().permitted = 0;
  const auto before = settings(fake().gpu());
  auto session = open();
  const auto result = session->set(kCore, 1410);
  EXPECT_EQ(result.status, ControlStatus::no_permission);
  EXPECT_THAT(result.message, AllOf(HasSubstr("core clock 1410 MHz"), HasSubstr("ergotuned")));
  EXPECT_EQ(settings(fake().gpu()), before);
}

TEST_F(NvmlControls, ASetterThatPretendsIsFoundOutWhenItIsPutBack) {
  auto session = open();
  ASSERT_TRUE(session->set(kPower, 300).ok());
  fake().add_fault("nvmlDeviceSetPowerManagementLimit", -1, 0, 1);  // once: success, and nothing done
  const auto report = session->finish();
  EXPECT_TRUE(report.complete) << "verified, tried again";
  EXPECT_EQ(fake().gpu().power_limit_mw, 700000u);
}

// B6: a BMC or a module may hold a device to less than the driver's limit.
TEST_F(NvmlControls, ALowerLimitThatIsEnforcedElsewhereIsNoLimitThatWasSet) {
  auto session = open();
  fake().gpu().outer_limit_mw = 400'000;
  EXPECT_FALSE(session->set(kPower, 500).ok());
  EXPECT_TRUE(session->set(kPower, 350).ok());
  EXPECT_TRUE(session->check().ok());
  fake().gpu().outer_limit_mw = 300'000;
  EXPECT_FALSE(session->check().ok()) << "also one that comes later";
}

// B1
TEST_F(NvmlControls, ALostDeviceIsReportedFromASettingThatFails) {
  const auto control = open_control("nvml:0", environment);
  EXPECT_EQ(control->lost(), "");
  fake().add_fault("nvmlDeviceSetGpuLockedClocks", 999);
  EXPECT_FALSE(control->set(kCore, 1410).ok());
  EXPECT_EQ(control->lost(), "");
  fake().add_fault("*", 15);
  EXPECT_NE(control->lost(), "");
  fake().clear_faults();
  EXPECT_EQ(control->lost(), "");
}

// B13
TEST_F(NvmlControls, ADeviceThatIsLostWhenItsSessionEndsIsPutBackOnceItIsBack) {
  auto session = open();
  ASSERT_TRUE(session->set(kCore, 1410).ok());
  fake().add_fault("*", 15);
  std::thread back([] {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    fake().clear_faults();
  });
  EXPECT_TRUE(session->finish().complete);
  back.join();
  EXPECT_EQ(fake().gpu().locked, 0);
  EXPECT_EQ(fake().gpu().persistence, 0);
}

// B15: what was there before cannot be known, but no lock of ours stays.
TEST_F(NvmlControls, LocksOfADamagedJournalAreReset) {
  const auto leave_damaged = [&] {
    const auto folder = StateFolder::open(environment.state_folder);
    const auto file = folder.journal_file(fake().gpu().uuid);
    std::ofstream(file) << "no journal";
    ::chmod(file.c_str(), 0600);
    fake().gpu().locked = fake().gpu().memory_locked = 1;
  };
  leave_damaged();
  const auto reports = replay_stale_journals(environment);
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_FALSE(reports[0].complete) << "the limit is still to be looked at";
  EXPECT_EQ(fake().gpu().locked, 0);
  EXPECT_EQ(fake().gpu().memory_locked, 0);
  leave_damaged();
  EXPECT_THROW(open(), UserError);
  EXPECT_EQ(fake().gpu().locked, 0);
  EXPECT_NO_THROW(open());
}

TEST_F(NvmlControls, ForgedStepsAreRefused) {
  auto control = open_control("nvml:0", environment);
  const std::string uuid = fake().gpu().uuid;
  EXPECT_FALSE(control->restore({"nvml-power-limit", fake().gpu(1).uuid, "300000"}).ok()) << "another board";
  EXPECT_FALSE(control->restore({"nvml-power-limit", uuid, "all of it"}).ok());
  EXPECT_FALSE(control->restore({"nvml-fan", uuid, "0"}).ok());
  EXPECT_FALSE(control->restore({"sysfs", "/etc/passwd", "x"}).ok());
}

// Every NVML function in turn, every code, from the start and from the middle of a session: a status and no
// crash; and once the fault is gone, nothing is left that could be put back.
struct FaultCase {
  std::string function;
  int code;
};
struct NvmlFaults : NvmlControls, ::testing::WithParamInterface<std::string> {
  void run(const std::string& generation, int code, std::uint64_t healthy_calls) {
    SCOPED_TRACE(testing::Message() << GetParam() << " code " << code << " after " << healthy_calls << " calls, "
                                    << generation);
    start(generation);
    fake().gpu().power_limit_mw = fake().gpu().max_power_limit_mw - 10000;
    const auto before = settings(fake().gpu());
    fake().add_fault(GetParam(), code, healthy_calls);
    try {
      ControlSessionOptions options;
      options.restore_attempts = 2;
      auto session = ControlSession::open(open_control("nvml:0", environment), options);
      const double core = generation == "hopper" ? 1410 : 1005;
      for (const auto& [quantity, value] : {std::pair{kCore, core}, std::pair{kPower, 210.0}}) {
        const auto result = session->set(quantity, value);
        EXPECT_EQ(result.ok(), result.message.empty()) << "a failure says why";
      }
      // The fault lasts through the restore: what fails is reported, and the journal waits.
      const auto report = session->finish();
      EXPECT_TRUE(report.complete || !report.summary.empty());
    } catch (const UserError& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
    }
    fake().clear_faults();
    for (const auto& report : replay_stale_journals(environment)) EXPECT_TRUE(report.complete) << report.summary;
    EXPECT_EQ(settings(fake().gpu()), before);
    EXPECT_THAT(list_journals(environment), SizeIs(0));
  }
};

// CI takes each function and code from its first call on; ERGOTUNE_ALL_FAULTS=1 also lets the fault begin
// later, on both kinds of GPUs.
TEST_P(NvmlFaults, NothingIsLeftBehind) {
  const bool all = std::getenv("ERGOTUNE_ALL_FAULTS") != nullptr;
  const bool of_old_gpus = GetParam().find("Applications") != std::string::npos;
  constexpr std::array codes = {4, 15, 3, 10, 999};  // NO_PERMISSION, GPU_IS_LOST, NOT_SUPPORTED, TIMEOUT, UNKNOWN
  for (const int code : codes) {
    if (!of_old_gpus || all) run("hopper", code, 0);
    if (of_old_gpus || all) run("pascal", code, 0);
    if (!all) continue;
    for (const std::uint64_t healthy_calls : {1, 2, 3}) {
      run("hopper", code, healthy_calls);
      run("pascal", code, healthy_calls);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryFunction, NvmlFaults,
    ::testing::Values("nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
                      "nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetArchitecture",
                      "nvmlSystemGetDriverVersion", "nvmlDeviceGetClockInfo", "nvmlDeviceGetSupportedMemoryClocks",
                      "nvmlDeviceGetSupportedGraphicsClocks", "nvmlDeviceGetCurrentClocksEventReasons",
                      "nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetPowerManagementDefaultLimit",
                      "nvmlDeviceGetPowerManagementLimitConstraints", "nvmlDeviceGetPersistenceMode",
                      "nvmlDeviceGetApplicationsClock", "nvmlDeviceGetDefaultApplicationsClock",
                      "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks",
                      "nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks",
                      "nvmlDeviceSetApplicationsClocks", "nvmlDeviceResetApplicationsClocks",
                      "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPersistenceMode"),
    [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ergotune
