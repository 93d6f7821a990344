// Execution parameters from a range, and the messages where that is not possible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "error_of.hpp"
#include "measure/execution_parameters.hpp"

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
  EXPECT_THAT(error_of([&] { make_execution_parameter(spec(Choice::all, ParameterKind::power_limit_w), watts()); }),
              testing::AllOf(HasSubstr("problem.toml:12:3"), HasSubstr("100 to 300 W")));
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
  EXPECT_THAT(error_of([&] { make_execution_parameter(wanted, clocks()); }),
              testing::AllOf(HasSubstr("1400"), HasSubstr("1395")));
  wanted.values = {Value("max")};
  EXPECT_THROW(make_execution_parameter(wanted, clocks()), UserError);
}

TEST(ExecutionParameter, TheModelsSuggestionIsSnapped) {
  EXPECT_THROW(make_execution_parameter(spec(Choice::model), clocks()), UserError);
  EXPECT_THAT(numbers(make_execution_parameter(spec(Choice::model), clocks(), {998, 1011, 1003})), ElementsAre(1005));
}

TEST(ExecutionParameter, SettingsAreThoseOfTheExecutionParametersOfAConfiguration) {
  std::vector<Parameter> parameters(3);
  parameters[0].name = "core_clock_mhz";
  parameters[0].kind = ParameterKind::core_clock_mhz;
  parameters[1].name = "block";
  parameters[2].name = "tegra_gr_clock";
  parameters[2].kind = ParameterKind::memory_clock_mhz;
  const auto setting = setting_of(parameters, {Value(1410), Value(32), Value(900000000)});
  EXPECT_EQ(setting.size(), 2u);
  EXPECT_EQ(setting.at(ControlQuantity::core_clock_mhz), 1410);
  EXPECT_NEAR(setting.at(ControlQuantity::memory_clock_mhz), 900, 1e-9);
  EXPECT_EQ(setting_of(parameters, {Value(1410), Value(32)}).size(), 1u) << "a configuration of before";
}

/// A control that knows core clocks and nothing else.
struct ClockControl : Control {
  std::string id() const override { return "clocks:0"; }
  std::string device_key() const override { return "clocks"; }
  ControlRange range(ControlQuantity quantity) override {
    return quantity == ControlQuantity::core_clock_mhz ? clocks() : ControlRange{};
  }
  std::vector<double> core_clocks_at(double) override { return {}; }
  bool permitted() override { return true; }
  std::vector<RestoreStep> snapshot() override { return {}; }
  std::string external_lock_sign() override { return {}; }
  ControlResult set(ControlQuantity, double) override { return {}; }
  ControlResult restore(const RestoreStep&) override { return {}; }
};

TEST(ExecutionParameters, OfAProblemBecomeParametersByItsControl) {
  ClockControl control;
  Problem problem;
  problem.parameters.resize(1);
  problem.execution_parameters = {spec(Choice::model)};
  resolve_execution_parameters(problem, control, {{ParameterKind::core_clock_mhz, {998}}});
  ASSERT_EQ(problem.parameters.size(), 2u);
  EXPECT_EQ(problem.parameters[1].name, "core_clock_mhz");
  EXPECT_THAT(numbers(problem.parameters[1]), ElementsAre(1005));
  EXPECT_TRUE(problem.execution_parameters.empty());
  problem.execution_parameters = {spec(Choice::model)};
  EXPECT_THROW(resolve_execution_parameters(problem, control, {}), UserError) << "nothing is suggested";
}

TEST(ExecutionParameters, ThatTheControlDoesNotSetAreRefusedByItsName) {
  ClockControl control;
  EXPECT_THAT(
      error_of([&] { make_execution_parameters({spec(Choice::all, ParameterKind::power_limit_w)}, control, {}); }),
      HasSubstr("clocks:0"));
  EXPECT_THROW(make_execution_parameters({spec(Choice::all, ParameterKind::code)}, control, {}), UserError);
}

TEST(ExecutionParameter, AnUnsupportedQuantityIsAClearMistake) {
  EXPECT_THROW(make_execution_parameter(spec(Choice::all), ControlRange{}), UserError);
}

}  // namespace
}  // namespace ergotune
