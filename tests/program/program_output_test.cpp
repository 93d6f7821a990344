// What is read from a program's output.
#include "program/program_output.hpp"
#include "program/program_runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ergotune {
namespace {

using testing::HasSubstr;
using Numbers = std::map<std::string, double>;

std::string read(const std::string& pattern, const std::string& out, const std::string& err, Numbers& numbers) {
  Program program;
  program.output["x"] = pattern;
  return OutputPatterns(program).read(out, err, numbers);
}

TEST(ProgramOutput, TheLastMatchCounts) {
  Numbers numbers;
  EXPECT_EQ(read("rate: ([0-9.]+)", "rate: 1\nrate: 2.5 rate: 3.5\nend\n", "", numbers), "");
  EXPECT_EQ(numbers, (Numbers{{"x", 3.5}}));
  EXPECT_EQ(read("rate: (\\S+)", "nothing", "rate: -1.5e-3\r\n", numbers), "");
  EXPECT_EQ(numbers["x"], -1.5e-3);
  EXPECT_EQ(read("rate: (\\S+)", "rate: 1\n", "rate: 2\n", numbers), "");
  EXPECT_EQ(numbers["x"], 1) << "standard output comes first";
}

TEST(ProgramOutput, APatternWithTwoGroupsReadsSeveralNumbersByTheirNames) {
  Numbers numbers;
  EXPECT_EQ(read("(\\w+) took ([0-9.]+)", "setup took 1\nsolve took 2\nend\nsetup took 3, solve took 4\n", "", numbers),
            "");
  EXPECT_EQ(numbers, (Numbers{{"x.setup", 3}, {"x.solve", 4}}));
  EXPECT_NE(read("(\\w+) took (\\S+)", "setup took long\nsolve took 2", "", numbers), "");
}

TEST(ProgramOutput, ComparesNumbersWithinATolerance) {
  EXPECT_EQ(difference("a 1.0\n", "a 1.0\n", {}, {}), "");
  EXPECT_THAT(difference("a 1.0\n", "a 1.00\n", {}, {}), HasSubstr("line 1"));
  EXPECT_EQ(difference("a  1.0001\n", "a 1\n", {}, 1e-3), "");
  EXPECT_THAT(difference("x\na 1.01\n", "x\na 1\n", {}, 1e-3), HasSubstr("line 2"));
  EXPECT_THAT(difference("b 1\n", "a 1\n", 1.0, {}), HasSubstr("line 1"));
  EXPECT_THAT(difference("1\n", "1\n2\n", 1.0, {}), HasSubstr("1 lines and should have 2"));
  EXPECT_EQ(difference("1", "1\n", {}, {}), "it ends otherwise");
}

SensorTrace steady(double watts, const std::string& id) {
  SensorTrace trace;
  trace.info.id = id;
  trace.info.kind = SensorKind::cumulative_energy;
  trace.info.update_period = 1e-3;
  for (int i = 0; i < 5000; ++i) trace.readings.push_back({1e-3 * i, watts * 1e-3 * i});
  return trace;
}

TEST(ProgramEnergy, SensorsOfDifferentPartsAreAdded) {
  const std::vector<TimeSpan> spans{{0.5, 1.5}, {2, 3}, {3.2, 4.2}};
  const EnergyOfRuns both = energy_of_runs({steady(60, "a"), steady(40, "b")}, spans, 2);
  EXPECT_EQ(both.why_not, "");
  EXPECT_NEAR(both.energy.value, 50, 0.1) << "two runs in each second";
  EXPECT_NEAR(both.power.value, 100, 0.2);
  EXPECT_EQ(both.energy.sensor, "a,b");
  EXPECT_EQ(both.energy.n, 6);
  EXPECT_GT(both.energy.standard_error, 0) << "the edges are not known better than the counter's update";
  SensorTrace broken = steady(40, "b");
  broken.readings.resize(100);
  EXPECT_THAT(energy_of_runs({steady(60, "a"), broken}, spans, 1).why_not, HasSubstr("b: its readings leave out"));
}

TEST(ProgramEnergy, WhatLastsIsInTheInterval) {
  const std::vector<TimeSpan> spans{{0.5, 1.5}, {2, 3}, {3.2, 4.2}};
  SensorTrace moody = steady(60, "a");
  moody.info.repeatability = 0.05;
  EXPECT_NEAR(energy_of_runs({moody}, spans, 1).energy.standard_error, 3, 0.1);
}

}  // namespace
}  // namespace ergotune
