// The NVML control at its bounds: what cannot be read, what is still set, what is written and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "power/control_backends.hpp"
#include "power/effective_user.hpp"
#include "power/nvml_controls.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
constexpr auto kCore = ControlQuantity::core_clock_mhz;
constexpr auto kMemory = ControlQuantity::memory_clock_mhz;
constexpr auto kPower = ControlQuantity::power_limit_w;

struct NvmlBounds : NvmlControls {
  /// The board, with what it had remembered.
  std::unique_ptr<Control> control() const {
    auto opened = open_control("nvml:0", environment);
    opened->snapshot();
    return opened;
  }
  /// What was set since, by function.
  static std::vector<std::string> calls_since(std::uint64_t before) {
    std::vector<std::string> names;
    const auto calls = fake().setter_calls();
    for (auto i = calls.size() - (fake().state().setter_calls - before); i < calls.size(); ++i)
      names.push_back(std::string(calls[i].function).substr(10) + " " + std::to_string(calls[i].a));
    return names;
  }
  static std::uint64_t calls() { return fake().state().setter_calls; }
};

TEST_F(NvmlBounds, ABoardWithoutRoomHasNoLimitToSet) {
  fake().board().min_power_limit_mw = 700000;
  auto range = control()->range(kPower);
  EXPECT_FALSE(range.supported);
  EXPECT_EQ(range.why_not, "the board allows 700 W only");
  fake().board().min_power_limit_mw = 200000;
  fake().board().default_power_limit_mw = 650000;
  range = control()->range(kPower);
  EXPECT_EQ(range.default_value, 650);
  EXPECT_EQ(range.current, 700);
  fake().add_fault("nvmlDeviceGetPowerManagementDefaultLimit", 3);
  EXPECT_EQ(control()->range(kPower).default_value, 700) << "the highest";
  fake().add_fault("nvmlDeviceGetPowerManagementLimit", 3);
  EXPECT_FALSE(control()->range(kPower).supported);
  EXPECT_THAT(control()->range(kPower).why_not, HasSubstr("NVML code 3"));
}

TEST_F(NvmlBounds, ClocksThatCannotBeReadAreAFailureOfTheDrivers) {
  fake().add_fault("nvmlDeviceGetSupportedMemoryClocks", 15);
  EXPECT_EQ(control()->set(kMemory, 1593).status, ControlStatus::device_lost);
  EXPECT_THAT(control()->range(kMemory).why_not, HasSubstr("cannot be read"));
  fake().clear_faults();
  fake().add_fault("nvmlDeviceGetSupportedMemoryClocks", 3);
  EXPECT_EQ(control()->set(kMemory, 1593).status, ControlStatus::not_supported);
}

TEST_F(NvmlBounds, WhatFailedOnceIsAskedAgainAndWhatIsKnownIsNot) {
  auto board = control();
  fake().add_fault("nvmlDeviceGetSupportedGraphicsClocks", 999, 0, 1);
  EXPECT_THAT(board->core_clocks_at(2619), IsEmpty());
  const auto clocks = board->core_clocks_at(2619);
  EXPECT_FALSE(clocks.empty());
  fake().add_fault("nvmlDeviceGetSupportedGraphicsClocks", 999);
  EXPECT_EQ(board->core_clocks_at(2619), clocks);
}

TEST_F(NvmlBounds, AListThatDoesNotFitIsAskedForOnceMore) {
  fake().add_fault("nvmlDeviceGetSupportedMemoryClocks", 7, 0, 1);  // more than anybody has expected
  EXPECT_FALSE(control()->range(kMemory).values.empty());
  fake().clear_faults();
  fake().add_fault("nvmlDeviceGetSupportedMemoryClocks", 999, 0, 1);
  EXPECT_TRUE(control()->range(kMemory).values.empty()) << "a failure is one";
}

TEST_F(NvmlBounds, AClockOfASettingIsToldWhereItCanBeRead) {
  fake().add_fault("nvmlDeviceGetClockInfo", 999);
  fake().board().locked = 1;
  fake().board().locked_min = fake().board().locked_max = 1200;
  fake().set_activity(1);
  const auto words = control()->foreign_setting();
  fake().clear_faults();
  const auto better = control()->foreign_setting();
  if (!words.empty()) {
    EXPECT_THAT(words, HasSubstr("it is held by a clock setting"));
    EXPECT_THAT(better, HasSubstr("it runs at"));
  }
}

TEST_F(NvmlBounds, PersistenceIsLookedAtOnce) {
  fake().board().persistence = 1;
  auto changed = control();
  ASSERT_TRUE(changed->set(kPower, 300).ok());
  fake().board().persistence = 0;  // somebody else
  const auto before = calls();
  ASSERT_TRUE(changed->set(kPower, 310).ok());
  EXPECT_THAT(calls_since(before), ElementsAre("SetPowerManagementLimit 310000"));
}

TEST_F(NvmlBounds, AMemoryClockAloneIsApplied) {
  const auto session = open();
  EXPECT_TRUE(session->apply({{kMemory, 1593}}).ok());
  EXPECT_TRUE(session->apply({{kCore, 990}}).ok());
  EXPECT_EQ(session->apply({{kMemory, 1593}, {kCore, 991}}).status, ControlStatus::invalid_value);
}

TEST_F(NvmlBounds, ALockThatTheBoardTookIsWrittenDownAsTaken) {
  const auto session = open();
  const auto journalled = [&](const std::string& kind) -> std::string {
    const auto journals = list_journals(environment);
    for (const auto& step : journals.at(0).steps)
      if (step.kind == kind) return "\"" + step.value + "\"";
    return "";
  };
  ASSERT_TRUE(session->set(kCore, 990).ok());
  EXPECT_EQ(journalled("nvml-locked-core-clocks"), "\"taken\"");
  EXPECT_EQ(journalled("nvml-locked-memory-clocks"), "") << "it was not touched";
  ASSERT_TRUE(session->set(kMemory, 1593).ok());
  EXPECT_EQ(journalled("nvml-locked-memory-clocks"), "\"taken\"");
  EXPECT_TRUE(session->finish().complete);
}

TEST_F(NvmlBounds, WhatCouldNotBeRememberedIsNotChanged) {
  auto forgetful = open_control("nvml:0", environment);
  EXPECT_EQ(forgetful->set(kPower, 300).status, ControlStatus::not_supported);
  EXPECT_EQ(fake().board().power_limit_mw, 700000u);
  EXPECT_EQ(fake().board().persistence, 0);
  fake().add_fault("nvmlDeviceGetPowerManagementLimit", 999);
  EXPECT_THROW(control(), UserError);
}

TEST_F(NvmlBounds, PersistenceIsSwitchedOnOnceWhereItIsOff) {
  auto changed = control();
  auto before = calls();
  ASSERT_TRUE(changed->set(kPower, 300).ok());
  ASSERT_TRUE(changed->set(kPower, 310).ok());
  EXPECT_THAT(calls_since(before),
              ElementsAre("SetPersistenceMode 1", "SetPowerManagementLimit 300000", "SetPowerManagementLimit 310000"));
  before = calls();
  ASSERT_TRUE(control()->set(kPower, 320).ok());
  EXPECT_THAT(calls_since(before), ElementsAre("SetPowerManagementLimit 320000")) << "it is on already";
}

TEST_F(NvmlBounds, TheLimitIsReadBackToHalfAWatt) {
  auto changed = control();
  for (const auto& [milliwatts, good] : {std::pair{300500u, true}, {299500u, true}, {300600u, false}, {299400u, false}}) {
    fake().board().power_limit_mw = milliwatts;
    EXPECT_EQ(changed->check(kPower, 300).ok(), good) << milliwatts;
  }
  EXPECT_THAT(changed->check(kPower, 300).message, HasSubstr("but it is 299.4 W"));
  fake().add_fault("nvmlDeviceGetPowerManagementLimit", 15);
  EXPECT_TRUE(changed->check(kPower, 300).ok()) << "nobody can tell";
}

TEST_F(NvmlBounds, ApplicationClocksAreReadBackAndLocksAreNot) {
  start("pascal");
  auto changed = control();
  ASSERT_TRUE(changed->set(kCore, 1005).ok());
  EXPECT_TRUE(changed->check(kCore, 1005).ok());
  EXPECT_TRUE(changed->check(kMemory, 877).ok());
  EXPECT_THAT(changed->check(kCore, 1200).message, HasSubstr("but it is 1005 MHz"));
  EXPECT_FALSE(changed->check(kMemory, 900).ok());
  start("turing");
  auto locked = control();
  ASSERT_TRUE(locked->set(kCore, 900).ok());
  EXPECT_TRUE(locked->check(kCore, 1200).ok()) << "a lock has no getter";
}

TEST_F(NvmlBounds, TheClockOfNowIsToldWhereSomebodyHasSetOne) {
  start("pascal");
  EXPECT_FALSE(control()->range(kCore).current);
  fake().board().application_graphics = 1200;
  EXPECT_EQ(control()->range(kCore).current, 1200);
  EXPECT_EQ(control()->range(kMemory).current, 877);
  EXPECT_EQ(control()->foreign_under_load({"application_clocks"}, 1200), "") << "it can be put back";
  fake().board().application_graphics = 1380;
  fake().board().application_memory = 400;
  EXPECT_EQ(control()->range(kMemory).current, 400);
}

TEST_F(NvmlBounds, ALockShowsUnderLoad) {
  const auto board = control();
  EXPECT_TRUE(board->may_hide_a_lock());
  EXPECT_EQ(board->foreign_under_load({}, 1200), "");
  EXPECT_EQ(board->foreign_under_load({"power_cap"}, 1200), "");
  EXPECT_THAT(board->foreign_under_load({"power_cap", "application_clocks"}, 1200), HasSubstr("it runs at 1200 MHz"));
  EXPECT_THAT(board->foreign_under_load({"application_clocks"}, std::nullopt), HasSubstr("held by a clock setting"));
}

TEST_F(NvmlBounds, AMemoryClockTakesTheNearestCoreClockThatGoesWithIt) {
  start("ampere");
  auto& board = fake().board();
  board.supports_locked_clocks = board.supports_memory_locked_clocks = 0;
  board.application_graphics = 1410;
  board.application_clocks_set = 1;
  auto changed = control();
  ASSERT_TRUE(changed->set(kMemory, 405).ok());
  EXPECT_EQ(board.application_memory, 405u);
  EXPECT_EQ(board.application_graphics, 420u) << "the highest at this memory clock";
  ASSERT_TRUE(changed->set(kMemory, 7001).ok());
  EXPECT_EQ(board.application_graphics, 420u) << "it stays where it can";
}

TEST_F(NvmlBounds, SettingNeedsTheRightThatTheDriverAsksFor) {
  EXPECT_EQ(control()->permitted(), geteuid() == 0);
  const auto board = control();
  const EffectiveUser nobody;
  EXPECT_FALSE(board->permitted());
}

TEST_F(NvmlBounds, BoardsAreOpenedByNumberOrUuid) {
  EXPECT_EQ(open_control("nvml", environment)->id(), "nvml:0");
  EXPECT_EQ(find_nvml_control(fake().board(1).uuid, "", environment), "nvml:1");
  EXPECT_EQ(find_nvml_control("GPU-x", "0000:1b:00.0", environment), "nvml:0");
  EXPECT_EQ(find_nvml_control("GPU-x", "", environment), "");
  const auto refusal = [&](const std::string& id) -> std::string {
    try {
      return open_control(id, environment)->id();
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal("nvml:7"), HasSubstr("no control \"nvml:7\": NVML knows no such board"));
  fake().add_fault("nvmlDeviceGetUUID", 999);
  EXPECT_THAT(refusal("nvml:0"), HasSubstr("control \"nvml:0\" cannot be opened: the board does not tell its UUID"));
}

TEST_F(NvmlBounds, WhatIsAsItWasIsNotWrittenAgain) {
  auto board = control();
  const auto steps = board->snapshot();
  const auto before = calls();
  for (const auto& step : steps)
    if (!step.quantity) {
      EXPECT_TRUE(board->restore(step).ok()) << step.kind;
    }
  EXPECT_THAT(calls_since(before), IsEmpty());
}

TEST_F(NvmlBounds, AValueThatDoesNotStayIsNotPutBack) {
  auto board = control();
  const std::string uuid = fake().board().uuid;
  const auto put_back = [&](const char* milliwatts) { return board->restore({"nvml-power-limit", uuid, milliwatts}); };
  fake().board().power_limit_mw = 300000;
  fake().add_fault("nvmlDeviceSetPowerManagementLimit", -1);  // success, and nothing done
  EXPECT_EQ(put_back("650000").message, "nvml-power-limit: it is 300000 after 650000 was written");
  fake().clear_faults();
  EXPECT_EQ(put_back("650000").status, ControlStatus::ok);
  EXPECT_EQ(put_back("1").status, ControlStatus::invalid_value);
  fake().add_fault("nvmlDeviceGetPowerManagementLimit", 15, 1);
  EXPECT_THAT(put_back("600000").message, HasSubstr("cannot be verified"));
  for (const char* kind : {"nvml-power-limit", "nvml-persistence-mode", "nvml-application-clocks"})
    for (const char* bad : {"", "x"}) EXPECT_EQ(board->restore({kind, uuid, bad}).status, ControlStatus::invalid_value) << kind;
}

TEST_F(NvmlBounds, ApplicationClocksAreResetOrSetAgain) {
  start("pascal");
  auto& board = fake().board();
  auto changed = control();
  const std::string uuid = board.uuid;
  const auto restore = [&](const char* value) {
    board.application_clocks_set = 1;
    board.application_graphics = 1005;
    const auto before = calls();
    const auto result = changed->restore({"nvml-application-clocks", uuid, value});
    EXPECT_TRUE(result.ok()) << result.message;
    return calls_since(before);
  };
  EXPECT_THAT(restore("877 1380"), ElementsAre("ResetApplicationsClocks 0")) << "the driver's own choice";
  EXPECT_THAT(restore("877 1200"), ElementsAre("ResetApplicationsClocks 0", "SetApplicationsClocks 877"));
  EXPECT_EQ(board.application_graphics, 1200u);
  EXPECT_THAT(restore("877 1005"), IsEmpty());
  EXPECT_EQ(changed->restore({"nvml-application-clocks", uuid, "877"}).status, ControlStatus::invalid_value);
  board.application_graphics = 900;
  fake().add_fault("nvmlDeviceResetApplicationsClocks", 999);
  EXPECT_FALSE(changed->restore({"nvml-application-clocks", uuid, "877 1380"}).ok()) << "set is not reset";
  EXPECT_TRUE(changed->restore({"nvml-application-clocks", uuid, "877 1200"}).ok()) << "they were others";
  fake().add_fault("nvmlDeviceSetApplicationsClocks", -1);
  EXPECT_THAT(changed->restore({"nvml-application-clocks", uuid, "877 1005"}).message, HasSubstr("they are 877 1200 after 877 1005 was written"));
}

}  // namespace
}  // namespace ergotune
