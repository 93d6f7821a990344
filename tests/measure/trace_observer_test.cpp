// The observer "trace": what it writes of sensors and a GPU that say what the test tells them to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "measure/energy/power_trace.hpp"
#include "measure/observers/trace_observer.hpp"
#include "scripted_sensor.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using test::ScriptedMonitor;
using test::ScriptedSensor;
using testing::ElementsAre;

SensorInfo sensor_info(const std::string& id, SensorKind kind = SensorKind::instantaneous_power) {
  SensorInfo info;
  info.id = id;
  info.kind = kind;
  return info;
}

class Trace : public testing::Test {
 protected:
  Trace() {
    options.before = options.after = 0;
    options.file = folder / "trace.csv";
    options.period = 0;
  }

  void add(SensorInfo info, std::vector<Reading> readings) {
    auto sensor = std::make_unique<ScriptedSensor>(std::move(info), ScriptedSensor::Parts{std::move(readings)});
    last_sensor = sensor.get();
    sources.sensors.push_back(std::move(sensor));
  }
  void add_gpu(std::vector<DeviceState> states) {
    looks = states.size();
    auto monitor = std::make_unique<ScriptedMonitor>(std::move(states));
    gpu = monitor.get();
    sources.monitor = std::move(monitor);
  }
  /// What a stream of this configuration leaves behind.
  PowerTrace traced(const std::string& file = "trace.csv") {
    if (!observer) observer = make_trace_observer(std::move(sources), options);
    observer->register_configuration({&names, &values});
    observer->before_start();
    if (last_sensor) last_sensor->reads.wait_for(1);
    if (gpu) gpu->reads.wait_for(looks);
    observer->after_finish();
    observer->finished(stream);
    std::ifstream in(folder / file);
    EXPECT_TRUE(in) << file;
    return trace_from_csv(std::string(std::istreambuf_iterator<char>(in), {}), {});
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  TraceOptions options;
  EnergySources sources;
  ScriptedSensor* last_sensor = nullptr;
  ScriptedMonitor* gpu = nullptr;
  std::size_t looks = 0;
  std::vector<std::string> names{"a"};
  Configuration values{Value(1)};
  LaunchStream stream;
  std::shared_ptr<Observer> observer;
};

TEST_F(Trace, TimesAreFromTheFirstLaunchAndRepeatedValuesAreOne) {
  stream.queued_at = 10;
  stream.marks = {{10, 0, 0, 0}, {11, 0, 1, 50}, {12.5, 0, 2, 99}};
  add(sensor_info("power"), {{9.5, 50}, {9.75, 50}, {10.5, 200}, {11, 200}, {11.5, 50}});
  const PowerTrace found = traced();
  ASSERT_EQ(found.power.size(), 1u);
  EXPECT_EQ(found.power[0].name, "power");
  EXPECT_THAT(found.power[0].time, ElementsAre(-0.5, 0.5, 1.5));
  EXPECT_THAT(found.power[0].value, ElementsAre(50, 200, 50));
  EXPECT_EQ(found.load_seconds, 2.5);
  EXPECT_EQ(found.launches, 99u);
  EXPECT_TRUE(found.gpu.empty());
}

TEST_F(Trace, HoldsWhatTheGpuSaysAndWhyItsClocksAreSoFromWhenUntilWhen) {
  const auto state = [](std::vector<std::string> reasons, double clock) {
    DeviceState made;
    made.core_clock_mhz = clock;
    made.clock_reasons = std::move(reasons);
    return made;
  };
  std::vector<DeviceState> states{state({"power_cap"}, 1), state({"power_cap", "thermal"}, 2), state({"thermal"}, 3),
                                  state({}, 4), state({"power_cap"}, 5)};
  states[1].temperature_c = 61;
  states[2].memory_clock_mhz = 1593;
  states[3].core_voltage_v = 0.75;
  add_gpu(states);
  const double before = host_seconds();
  const PowerTrace found = traced();
  ASSERT_NE(found.find("core_clock_mhz"), nullptr);
  const auto& [name, time, clock] = *found.find("core_clock_mhz");
  ASSERT_GE(time.size(), 5u);
  EXPECT_THAT(std::vector(clock.begin(), clock.begin() + 5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_GE(time.front(), before - 1e-6) << "of the host";
  EXPECT_LE(time.back(), host_seconds());
  EXPECT_THAT(found.find("temperature_c")->value, ElementsAre(61));
  EXPECT_THAT(found.find("temperature_c")->time, ElementsAre(time[1]));
  EXPECT_THAT(found.find("memory_clock_mhz")->value, ElementsAre(1593));
  EXPECT_THAT(found.find("core_voltage_v")->value, ElementsAre(0.75));
  ASSERT_EQ(found.reasons.size(), 3u);
  const auto expect = [&](std::size_t i, const std::string& reason, double from, double to) {
    EXPECT_EQ(found.reasons[i].name, reason);
    EXPECT_EQ(found.reasons[i].from, from) << reason;
    EXPECT_EQ(found.reasons[i].to, to) << reason;
  };
  expect(0, "power_cap", time[0], time[2]);
  expect(1, "thermal", time[1], time[3]);
  expect(2, "power_cap", time[4], time.back());
}

TEST_F(Trace, EachConfigurationHasAFileNamedAfterItAndItsOwnReadings) {
  options.file.clear();
  options.folder = folder / "more" / "traces";
  add(sensor_info("power"), {{1, 50}});
  names = {"block", "unroll"};
  values = {Value(32), Value("x/y"), Value(1410)};
  EXPECT_EQ(traced("more/traces/" + trace_file("", "block=32,unroll=x/y,1410").string()).power[0].value.size(), 1u)
      << "of what comes last a worker knows no name";
  values[0] = Value(64);
  EXPECT_TRUE(traced("more/traces/" + trace_file("", "block=64,unroll=x/y,1410").string()).power.empty());
  EXPECT_EQ(last_sensor->restarts, 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options.folder), {}), 2);
}

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
    return error_of([&] { trace_from_csv(text, {"t.csv", 0, 0}); });
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
