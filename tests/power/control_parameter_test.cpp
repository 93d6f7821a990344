// Execution parameters from a range, messages, and the order in which settings are visited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ergotune/base/error.hpp"
#include "ergotune/power/control.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Choice = ExecutionParameterSpec::Choice;

ControlRange clocks() {
  ControlRange range;
  range.supported = true;
  for (int mhz = 210; mhz <= 1410; mhz += 15) range.values.push_back(mhz);
  range.low = 210;
  range.high = 1410;
  range.default_value = 1410;
  return range;
}

ControlRange watts() {
  ControlRange range;
  range.supported = true;
  range.low = 100;
  range.high = 300;
  range.default_value = 250;
  return range;
}

std::vector<double> numbers(const Parameter& parameter) {
  std::vector<double> values;
  for (const auto& value : parameter.values) values.push_back(value.as_real());
  return values;
}

ExecutionParameterSpec spec(Choice choice, ParameterKind kind = ParameterKind::core_clock_mhz) {
  ExecutionParameterSpec made;
  made.kind = kind;
  made.choice = choice;
  made.place = {"problem.toml", 12, 3};
  return made;
}

TEST(ExecutionParameter, AllTakesEverySupportedValue) {
  const auto parameter = make_execution_parameter(spec(Choice::all), clocks());
  EXPECT_EQ(parameter.name, "core_clock_mhz");
  EXPECT_EQ(parameter.kind, ParameterKind::core_clock_mhz);
  EXPECT_EQ(parameter.values.size(), 81u);
  EXPECT_TRUE(parameter.values[0].is_integer()) << "whole MHz are integers: that is how people write them";
  EXPECT_EQ(parameter.default_value, Value(1410));
}

TEST(ExecutionParameter, AllOfAContinuousQuantityAsksForANumber) {
  try {
    make_execution_parameter(spec(Choice::all, ParameterKind::power_limit_w), watts());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("problem.toml:12:3"));
    EXPECT_THAT(error.what(), HasSubstr("100 to 300 W"));
  }
}

TEST(ExecutionParameter, EquidistantSnapsAndKeepsTheEnds) {
  auto wanted = spec(Choice::equidistant);
  wanted.count = 4;
  EXPECT_THAT(numbers(make_execution_parameter(wanted, clocks())), ElementsAre(210, 615, 1005, 1410));
  wanted.count = 1;
  EXPECT_THAT(numbers(make_execution_parameter(wanted, clocks())), ElementsAre(1410));
  wanted.count = 1000;
  EXPECT_EQ(make_execution_parameter(wanted, clocks()).values.size(), 81u) << "never a value twice";
  wanted.count = 0;
  EXPECT_THROW(make_execution_parameter(wanted, clocks()), UserError);
  auto power = spec(Choice::equidistant, ParameterKind::power_limit_w);
  power.count = 3;
  const auto parameter = make_execution_parameter(power, watts());
  EXPECT_THAT(numbers(parameter), ElementsAre(100, 200, 300));
  EXPECT_EQ(parameter.default_value, Value(200)) << "nearest to the 250 W default, the lower of two";
}

TEST(ExecutionParameter, RangesTakeWhatIsInside) {
  auto wanted = spec(Choice::range);
  wanted.low = 1000;
  wanted.high = 1060;
  EXPECT_THAT(numbers(make_execution_parameter(wanted, clocks())), ElementsAre(1005, 1020, 1035, 1050));
  wanted.step = 30;
  EXPECT_THAT(numbers(make_execution_parameter(wanted, clocks())), ElementsAre(1005, 1035, 1065));
  wanted = spec(Choice::range);
  wanted.low = 1500;
  wanted.high = 1600;
  EXPECT_THROW(make_execution_parameter(wanted, clocks()), UserError);
  wanted.low = 2000;
  EXPECT_THROW(make_execution_parameter(wanted, clocks()), UserError);
  auto power = spec(Choice::range, ParameterKind::power_limit_w);
  power.low = 150;
  power.high = 500;
  EXPECT_THROW(make_execution_parameter(power, watts()), UserError) << "continuous: a step is needed";
  power.step = 50;
  EXPECT_THAT(numbers(make_execution_parameter(power, watts())), ElementsAre(150, 200, 250, 300));
}

TEST(ExecutionParameter, ListedValuesMustBeSupported) {
  auto wanted = spec(Choice::list);
  wanted.values = {Value(1410), Value(210.2)};
  EXPECT_THAT(numbers(make_execution_parameter(wanted, clocks())), ElementsAre(210, 1410));
  wanted.values = {Value(1400)};
  try {
    make_execution_parameter(wanted, clocks());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1400"));
    EXPECT_THAT(error.what(), HasSubstr("1395"));
  }
  wanted.values = {Value("max")};
  EXPECT_THROW(make_execution_parameter(wanted, clocks()), UserError);
}

TEST(ExecutionParameter, TheModelsSuggestionIsSnapped) {
  EXPECT_THROW(make_execution_parameter(spec(Choice::model), clocks()), UserError);
  EXPECT_THAT(numbers(make_execution_parameter(spec(Choice::model), clocks(), {998, 1011, 1003})),
              ElementsAre(1005));
}

TEST(ExecutionParameter, AnUnsupportedQuantityIsAClearMistake) {
  EXPECT_THROW(make_execution_parameter(spec(Choice::all), ControlRange{}), UserError);
}

TEST(ClockOutcome, SaysWhatRanInstead) {
  EXPECT_EQ(describe_clock_outcome(1410, 1275, {"power_cap"}), "asked 1410 MHz, ran 1275 MHz, power cap");
  EXPECT_EQ(describe_clock_outcome(1410, 1275, {}), "asked 1410 MHz, ran 1275 MHz");
  EXPECT_EQ(describe_clock_outcome(1410, 1400, {"power_cap"}), "") << "within 1 %";
  EXPECT_EQ(describe_clock_outcome(300, 293, {}), "") << "within half a step";
  EXPECT_NE(describe_clock_outcome(300, 315, {}), "");
}

TEST(ControlOrder, VisitsEqualSettingsTogetherAndStartsWithTheCurrent) {
  const auto core = [](double mhz) { return ControlSetting{{ControlQuantity::core_clock_mhz, mhz}}; };
  const std::vector<ControlSetting> settings = {core(900), core(1200), core(900), core(600), core(1200)};
  EXPECT_THAT(order_by_setting(settings, core(1200)), ElementsAre(1, 4, 0, 2, 3));
}

// Whatever comes in, each setting is visited in one go, and the slow quantity changes only as often as it
// must.
TEST(ControlOrder, ChangesAsSeldomAsPossible) {
  EXPECT_TRUE(rc::check([] {
    const auto cores = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
    std::vector<ControlSetting> settings;
    std::set<double> memories;
    std::set<ControlSetting> distinct;
    for (const int core : cores) {
      const double memory = *rc::gen::inRange(0, 3);
      settings.push_back(
          {{ControlQuantity::core_clock_mhz, core}, {ControlQuantity::memory_clock_mhz, memory}});
      memories.insert(memory);
      distinct.insert(settings.back());
    }
    const ControlSetting current = {{ControlQuantity::core_clock_mhz, 1},
                                    {ControlQuantity::memory_clock_mhz, 1}};
    const auto order = order_by_setting(settings, current);
    RC_ASSERT(std::set<std::size_t>(order.begin(), order.end()).size() == settings.size());
    std::size_t runs = 0, memory_runs = 0, core_runs = 0;
    const ControlSetting* last = nullptr;
    for (const auto i : order) {
      runs += !last || *last != settings[i];
      memory_runs += !last || last->at(ControlQuantity::memory_clock_mhz) !=
                                  settings[i].at(ControlQuantity::memory_clock_mhz);
      core_runs += last && last->at(ControlQuantity::core_clock_mhz) !=
                               settings[i].at(ControlQuantity::core_clock_mhz);
      last = &settings[i];
    }
    RC_ASSERT(runs == distinct.size());
    RC_ASSERT(memory_runs == memories.size());
    if (!settings.empty() && distinct.contains(current)) RC_ASSERT(settings[order[0]] == current);
    // Where the memory clock changes, the core clock stays if it can: at most one core change per further
    // setting.
    RC_ASSERT(core_runs <= (distinct.empty() ? 0 : distinct.size() - 1));
  }));
}

}  // namespace
}  // namespace ergotune
