#include "ergotune/measure/power_trace.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/base/statistics.hpp"
#include "kept_numbers.hpp"

namespace ergotune {
namespace {

/// 50 W before, then towards 250 W with this time constant, seen every 20 ms for `load` s.
TraceSeries rising(double constant, double load, double noise = 0) {
  TraceSeries series{"nvml:0/instant", {}, {}};
  int sign = 1;
  for (double t = -1; t <= load + 1; t += 0.02) {
    const double level = t < 0 ? 50 : t > load ? 80 : 250 - 200 * std::exp(-t / constant);
    series.time.push_back(t);
    series.value.push_back(level + (sign = -sign) * noise);
  }
  return series;
}

TEST(Settling, IsWhereAnExponentialEntersItsBand) {
  const double load = 3;
  for (const double constant : {0.1, 0.3}) {
    const auto settling = settling_of(rising(constant, load), load);
    ASSERT_TRUE(settling && settling->seconds) << constant;
    // 200 exp(-t/c) = 2 % of 250
    EXPECT_NEAR(*settling->seconds, constant * std::log(200 / 5.0), 0.03) << constant;
    EXPECT_NEAR(settling->before, 50, 1e-9);
    EXPECT_NEAR(settling->final, 250, 0.5);
  }
}

TEST(Settling, NoiseWidensTheBand) {
  const auto settling = settling_of(rising(0.1, 3, 4), 3);
  ASSERT_TRUE(settling && settling->seconds);
  EXPECT_GT(settling->band, 11);
  EXPECT_LT(*settling->seconds, 0.4);
}

TEST(Settling, WhatStillRisesDoesNotSettle) {
  const auto settling = settling_of(rising(8, 3), 3);
  ASSERT_TRUE(settling);
  EXPECT_FALSE(settling->seconds && *settling->seconds < 1.0);
  EXPECT_GT(settling->drift, 5);
  EXPECT_FALSE(settling_of({"x", {0, 1, 2}, {1, 1, 1}}, 3)) << "too few values";
}

/// All that is told of a series of a load of 3 s.
std::vector<double> told(const std::vector<double>& times, const std::vector<double>& values) {
  const auto settling = settling_of({"x", times, values}, 3);
  if (!settling) return {};
  return {settling->before, settling->final, settling->band, settling->seconds.value_or(-1), settling->most, settling->drift};
}

TEST(Settling, OfASeriesNumberByNumber) {
  const std::vector<double> times = {-1, -0.6, -0.5, -0.1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5};
  expect_kept(told(times, {10, 20, 30, 40, 50, 180, 220, 199, 203, 200, 200, 900}), {40, 201, 5.196152423, 1.5, 220, 0}, 1e-6);
  expect_kept(told(times, {10, 20, 30, 40, 50, 180, 220, 199, 200, 200, 200, 900}), {40, 200, 4, 1.5, 220, 0}, 1e-6);
  expect_kept(told(times, {10, 20, 30, 40, 50, 180, 220, 199, 100, 200, 300, 900}), {40, 200, 300, 0, 300, 200}, 1e-6);
  expect_kept(told(times, {10, 20, 30, 40, 50, 180, 220, 230, 200, 200, 200, 900}), {40, 200, 4, -1, 230, 0}, 1e-6);
  EXPECT_TRUE(told({0, 0.5, 1, 1.5, 2}, {1, 1, 1, 1, 1}).empty()) << "five values";
  EXPECT_FALSE(told({0, 0.5, 1, 1.5, 2, 2.5}, {1, 1, 1, 1, 1, 1}).empty());
  EXPECT_TRUE(told({0, 0.5, 1, 1.5, 1.6, 1.7, 2.5}, {1, 1, 1, 1, 1, 1, 1}).empty()) << "one value at the end";
}

TEST(Settling, DriftIsToldWhereItIsMoreThanThreeOfItsErrors) {
  // the whole load in its last third: a slope, and what lies beside it by turns
  const std::vector<double> times{2, 2.2, 2.4, 2.6, 2.8, 3};
  for (const double noise : {1.0, 2.0, 2.5, 2.9, 3.3, 4.0, 8.0}) {
    std::vector<double> values;
    for (std::size_t i = 0; i < times.size(); ++i) values.push_back(100 + 10 * times[i] + (i % 3 == 1 ? noise : -noise));
    const LineFit line = fit_line(times, values);
    const auto settling = settling_of({"x", times, values}, 3);
    ASSERT_TRUE(settling);
    EXPECT_EQ(settling->drift, std::abs(line.slope) > 3 * line.slope_error ? line.slope : 0) << noise;
  }
}

/// A load of 3 s whose last third is 31 values near 200 W.
std::optional<double> settles(double at_0, double at_1, double at_end) {
  TraceSeries series{"x", {0, 0.5, 1}, {at_0, 200, at_1}};
  for (int i = 0; i <= 30; ++i) {
    series.time.push_back(i == 30 ? 3 : 2 + i / 30.0);
    series.value.push_back(i == 30 ? at_end : 200);
  }
  return settling_of(series, 3)->seconds;
}

TEST(Settling, IsFromTheFirstValueOfTheLoadToItsLast) {
  EXPECT_EQ(settles(200, 200, 200), 0);
  EXPECT_EQ(settles(100, 200, 200), 0.5) << "out of the band with the first launch";
  EXPECT_EQ(settles(100, 204, 200), 0.5) << "on the band's edge";
  EXPECT_EQ(settles(100, 204.1, 200), std::nullopt) << "not before the last third";
  EXPECT_EQ(settles(200, 200, 300), std::nullopt) << "out of it with the last";
}

TEST(PowerTraces, LinesThatAreNoneAreNamed) {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      trace_from_csv(text, {"t.csv", 0, 0});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint("time_s,series,value\n\n1,power,2\n"), "");
  EXPECT_NE(complaint("time_s,series,value\n\n1,power\n").find("t.csv:3"), std::string::npos);
  EXPECT_NE(complaint("time_s,series,value\n12\n").find("is no line of a trace"), std::string::npos);
  EXPECT_NE(complaint("time_s,series,value\n1,power,2x\n").find("\"2x\""), std::string::npos);
  const PowerTrace trace = trace_from_csv("time_s,series,value\n1,temperature_c,50\n1,memory_clock_mhz,5\n1,core_voltage_v,1\n2,a,7\n"
                                          "1,reason:x,1\n4,reason:x,0\n", {});
  EXPECT_EQ(trace.board.size(), 3u);
  EXPECT_EQ(trace.power.size(), 1u);
  EXPECT_EQ(trace.reasons.at(0).name, "x");
  EXPECT_EQ(trace.reasons.at(0).from, 1);
  EXPECT_EQ(trace.reasons.at(0).to, 4);
  EXPECT_EQ(trace.find("b"), nullptr);
}

TEST(PowerTraces, AreTheSameFromTheirFile) {
  PowerTrace trace;
  trace.power.push_back({"command:echo 1,2", {-0.5, 0.25}, {50.5, 250}});
  trace.board.push_back({"core_clock_mhz", {0.5}, {1410}});
  trace.reasons.push_back({"power_cap", 0.1, 2.5});
  trace.load_seconds = 2.75;
  trace.launches = 321;
  const PowerTrace again = trace_from_csv(to_csv(trace), {});
  ASSERT_EQ(again.power.size(), 1u);
  EXPECT_EQ(again.power[0].name, "command:echo 1,2");
  EXPECT_EQ(again.power[0].time, trace.power[0].time);
  EXPECT_EQ(again.power[0].value, trace.power[0].value);
  EXPECT_EQ(again.find("core_clock_mhz")->value, trace.board[0].value);
  ASSERT_EQ(again.reasons.size(), 1u);
  EXPECT_EQ(again.reasons[0].to, 2.5);
  EXPECT_EQ(again.load_seconds, 2.75);
  EXPECT_EQ(again.launches, 321u);
  EXPECT_THROW(trace_from_csv("time_s,series,value\n1,two\n", {}), UserError);
  EXPECT_THROW(trace_from_csv("time_s,series,value\nx,power,1\n", {}), UserError);
}

}  // namespace
}  // namespace ergotune
