#include "measure/energy/power_trace.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/statistics.hpp"

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
  EXPECT_NE(complaint("time_s,series,value\n12\n").find("is not a line of a trace"), std::string::npos);
  EXPECT_NE(complaint("time_s,series,value\n1,power,2x\n").find("\"2x\""), std::string::npos);
  const PowerTrace trace = trace_from_csv(
      "time_s,series,value\n1,temperature_c,50\n1,memory_clock_mhz,5\n1,core_voltage_v,1\n2,a,7\n"
      "1,reason:x,1\n4,reason:x,0\n",
      {});
  EXPECT_EQ(trace.gpu.size(), 3u);
  EXPECT_EQ(trace.power.size(), 1u);
  EXPECT_EQ(trace.reasons.at(0).name, "x");
  EXPECT_EQ(trace.reasons.at(0).from, 1);
  EXPECT_EQ(trace.reasons.at(0).to, 4);
  EXPECT_EQ(trace.find("b"), nullptr);
}

TEST(PowerTraces, AreTheSameFromTheirFile) {
  PowerTrace trace;
  trace.power.push_back({"command:echo 1,2", {-0.5, 0.25}, {50.5, 250}});
  trace.gpu.push_back({"core_clock_mhz", {0.5}, {1410}});
  trace.reasons.push_back({"power_cap", 0.1, 2.5});
  trace.load_seconds = 2.75;
  trace.launches = 321;
  const PowerTrace again = trace_from_csv(to_csv(trace), {});
  ASSERT_EQ(again.power.size(), 1u);
  EXPECT_EQ(again.power[0].name, "command:echo 1,2");
  EXPECT_EQ(again.power[0].time, trace.power[0].time);
  EXPECT_EQ(again.power[0].value, trace.power[0].value);
  EXPECT_EQ(again.find("core_clock_mhz")->value, trace.gpu[0].value);
  ASSERT_EQ(again.reasons.size(), 1u);
  EXPECT_EQ(again.reasons[0].to, 2.5);
  EXPECT_EQ(again.load_seconds, 2.75);
  EXPECT_EQ(again.launches, 321u);
  EXPECT_THROW(trace_from_csv("time_s,series,value\n1,two\n", {}), UserError);
  EXPECT_THROW(trace_from_csv("time_s,series,value\nx,power,1\n", {}), UserError);
}

}  // namespace
}  // namespace ergotune
