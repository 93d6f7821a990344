// The estimators on traces made by hand, and what must never become a number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/statistics.hpp"
#include "energy_bench.hpp"
#include "measure/energy/energy_series.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

const EnergyAxis kTime = [](double t) { return t; };

SensorTrace counter_trace(double watts, double seconds, double tick = 0.1, double poll = 0.002) {
  SensorTrace trace{sensor_info("counter", SensorKind::cumulative_energy, tick, 0), {}, {}};
  for (double t = 0; t < seconds; t += poll)
    trace.readings.push_back({t, 1000 + watts * tick * std::floor(t / tick + 1e-9)});
  return trace;
}

TEST(Counter, IsRightForAnyTickPollAndPower) {
  EXPECT_TRUE(rc::check("a straight line of power is found whatever the tick and the polls", [] {
    const double watts = *rc::gen::inRange(1, 2000), tick = *rc::gen::inRange(5, 120) * 1e-3;
    const double poll = *rc::gen::inRange(1, 7) * 3.1e-4;
    const auto e = estimate_slope(counter_trace(watts, 1.5, tick, poll), {0, 1.5}, kTime);
    RC_ASSERT(e.valid);
    RC_ASSERT(std::abs(e.value - watts) <= std::max(1.5 * e.half_width(), 1e-3 * watts));
  }));
}

TEST(Counter, ThatDoesNotMoveHasNoValue) {
  auto trace = counter_trace(0, 1);
  const auto e = estimate_slope(trace, {0, 1}, kTime);
  EXPECT_FALSE(e.valid);
  EXPECT_THAT(e.why_not, HasSubstr("did not move"));
}

TEST(Counter, ThatGoesBackHasNoValue) {
  auto trace = counter_trace(300, 1);
  for (std::size_t i = trace.readings.size() / 2; i < trace.readings.size(); ++i) trace.readings[i].value -= 1100;
  const auto e = estimate_slope(trace, {0, 1}, kTime);
  EXPECT_FALSE(e.valid);
  EXPECT_THAT(e.why_not, HasSubstr("went back"));
}

TEST(Counter, ThatStopsHasNoValue) {
  auto trace = counter_trace(300, 1, 0.02);
  for (double t = 1; t < 2; t += 0.002) trace.readings.push_back({t, trace.readings.back().value});
  const auto e = estimate_slope(trace, {0, 2}, kTime);
  EXPECT_FALSE(e.valid);
  EXPECT_THAT(e.why_not, HasSubstr("stopped"));
}

TEST(PowerSensor, WithoutReadingsInTheSpanHasNoValue) {
  SensorTrace trace{sensor_info("average", SensorKind::windowed_power, 0.1, 1.0), {}, {}};
  for (double t = 0; t < 0.9; t += 0.1) trace.readings.push_back({t, 300});
  EXPECT_FALSE(estimate_slope(trace, {0, 0.9}, kTime).valid);  // every window reaches back before the span
  trace.readings.clear();
  trace.failure = "GPU is lost";
  EXPECT_THAT(estimate_slope(trace, {0, 0.9}, kTime).why_not, HasSubstr("GPU is lost"));
}

TEST(PowerSensor, LagMovesWhatItsReadingsSpeakOf) {
  // Power steps from 100 to 200 W at t = 1; a sensor 50 ms late shows it at 1.05.
  SensorTrace trace{sensor_info("samples", SensorKind::windowed_power, 0.02, 0.02, 0.05), {}, {}};
  for (double t = 0.02; t < 2; t += 0.02) trace.readings.push_back({t, t - 0.05 > 1.0 ? 200.0 : 100.0});
  EXPECT_NEAR(estimate_slope(trace, {0.1, 1.0}, kTime).value, 100, 1e-6);
}

TEST(LaunchAxis, TrustsDeviceTimeAndTheSmallestDelay) {
  LaunchStream stream;
  for (int i = 0; i <= 100; ++i)
    stream.marks.push_back({10 + 0.01 * i + (i % 10 ? 0.004 : 0.0001), 0, 0.01 * i, static_cast<std::uint64_t>(5 * i)});
  const LaunchAxis axis(stream);
  EXPECT_NEAR(axis.launches_at(10.5001), 250, 0.01);
  EXPECT_NEAR(axis.time_per_launch({10, 12}).seconds, 0.002, 1e-12);
  EXPECT_EQ(axis.launches_at(0), 0);
  EXPECT_EQ(axis.launches_at(100), 500);
}

TEST(LaunchAxis, PausesAreSeenAndLeftOut) {
  LaunchStream stream;
  stream.marks = {{0, 0, 0, 0}, {1, 0, 1, 100}, {1.5, 0, 1.5, 100}, {2.5, 0, 2.5, 200}};
  const LaunchAxis axis(stream);
  ASSERT_EQ(axis.pauses().size(), 1u);
  EXPECT_DOUBLE_EQ(axis.pauses()[0].length(), 0.5);
  EXPECT_NEAR(axis.time_per_launch({0, 3}).seconds, 0.01, 1e-12);
}

// A launch of 100 ms whose first half draws far more than its second, seen by a sensor that looks at 25 of
// every 100 ms: without jitter it sees one part only, and says so; with it the interval covers the truth.
TEST(PhaseJitter, ASleepingSensorSeesEveryPartOfALongLaunch) {
  int covered = 0, warned = 0, reported = 0;
  const int runs = 20;
  for (int run = 0; run < runs; ++run) {
    auto measure = [&](double jitter) {
      EnergyBench bench("hopper", static_cast<std::uint64_t>(100 + run));
      bench.gpu().leakage = 0;
      bench.start();
      bench.add(EnergyBench::Source::instant, sensor_info("instant", SensorKind::windowed_power, 0.1, 0.025));
      bench.set_kernel(0, 0.1, 0.6, 0.1, 0.5);
      bench.jitter = jitter;
      bench.warm_up(1);
      EnergyOptions options;
      const EnergyTrace trace = bench.run(options, 8.0, false);
      const double truth =
          0.1 * fake_nvml::power_at(bench.gpu(), 0.35, fake_nvml::top_clock(bench.gpu()), bench.gpu().ambient);
      return std::pair(estimate_energy(trace, options), truth);
    };
    const auto [locked, truth] = measure(0);
    for (const auto& warning : locked.warnings) warned += warning.find("same part") != std::string::npos;
    const auto [jittered, same] = measure(0.1);
    if (!jittered.quantities.contains("energy")) continue;  // known too badly to be told
    ++reported;
    covered += std::abs(jittered.quantities.at("energy").value - truth) <= jittered.half_width;
  }
  EXPECT_EQ(warned, runs);
  EXPECT_GE(reported, runs / 2);
  EXPECT_GE(covered, reported * 8 / 10);
}

TEST(Precision, WhatMissesItIsNotConvergedAndKeepsItsValue) {
  EnergyBench bench("hopper", 1);
  bench.add(EnergyBench::Source::samples, sensor_info("samples", SensorKind::windowed_power, 0.02, 0.02));
  bench.set_kernel(1e-3, 0, 0.4);
  EnergyOptions options;
  options.precision = 1e-5;
  const EnergyResult result = estimate_energy(bench.run(options, 1.0), options);
  EXPECT_EQ(result.status, Status::not_converged);
  EXPECT_TRUE(result.quantities.contains("energy"));
}

}  // namespace
}  // namespace ergotune
