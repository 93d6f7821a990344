// A GPU that hunts for its power limit: short windows must tell what it settles at.
#include "measure/energy/energy_plausible.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "energy_bench.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

constexpr double kLimit = 700, kElasticity = 2.8;
constexpr double kSettledRate = 2e5;  // launches per second
constexpr double kTruth = kLimit / kSettledRate;

/// Launch rate and power of a controller that swings around its limit with a period of about a second. Power
/// follows the rate; the counter ticks every 100 ms, with noise on what it shows.
EnergyTrace hunt(double seconds, double phase, double swing, double noise, std::uint64_t seed, double level = 1) {
  Random random(seed);
  EnergyTrace trace;
  trace.sensors.push_back({sensor_info("nvml:0/energy", SensorKind::cumulative_energy, 0.1, 0), {}, {}});
  double joules = 1e4, shown = joules, launches = 0, next_tick = 0.03 + 0.07 * random.uniform();
  constexpr double kStep = 1e-3;
  for (int i = 0; i * kStep <= seconds; ++i) {
    const double t = i * kStep;
    const double rate = kSettledRate * (1 + swing * std::sin(2 * M_PI * (t + phase)));
    if (i % 5 == 0) trace.stream.marks.push_back({t, 0, t, static_cast<std::uint64_t>(std::llround(launches))});
    if (t >= next_tick) {
      shown = joules + noise * 0.1 * kLimit * random.normal();
      next_tick += 0.1;
    }
    trace.sensors.front().readings.push_back({t, shown});
    launches += rate * kStep;
    joules += level * kLimit * std::pow(rate / kSettledRate, kElasticity) * kStep;
  }
  DeviceState state;
  state.power_limit_w = kLimit;
  state.clock_reasons = {"power_cap"};
  for (double t = 0; t <= seconds; t += 0.1) trace.gpu.emplace_back(t, state);
  return trace;
}

TEST(PowerCap, TheSettledEnergyIsFoundFromAnyPartOfTheSwing) {
  double worst = 0, worst_mean = 0;
  int covered = 0, runs = 0;
  for (int i = 0; i < 200; ++i) {
    const auto trace = hunt(0.9, i / 200.0, 0.04, 0.015, static_cast<std::uint64_t>(i + 1));
    EnergyOptions options;
    options.combine_sensors = false;
    const EnergyResult found = estimate_energy(trace, options);
    ASSERT_TRUE(found.quantities.contains("energy")) << i << " " << found.message;
    const auto& energy = found.quantities.at("energy");
    if (energy.method.find("power limit") == std::string::npos) continue;
    ++runs;
    worst = std::max(worst, std::abs(energy.value / kTruth - 1));
    covered += std::abs(energy.value - kTruth) <= found.half_width;
    options.whole_budget = true;  // a reference is a plain mean
    worst_mean =
        std::max(worst_mean, std::abs(estimate_energy(trace, options).quantities.at("energy").value / kTruth - 1));
    EXPECT_NEAR(found.quantities.at("power").value, kLimit, 1e-9);
    const auto& marks = trace.stream.marks;
    EXPECT_NEAR(found.quantities.at("time").value,
                marks.back().device_seconds / static_cast<double>(marks.back().launches), 1e-9)
        << "what was measured";
  }
  EXPECT_GE(runs, 180);  // in the others the mean power was too far from the limit to tell
  EXPECT_LT(worst, 0.02);
  EXPECT_GT(worst_mean, 2 * worst);
  EXPECT_GE(covered, runs * 9 / 10);
}

TEST(PowerCap, WhatDrawsLessThanTheLimitIsNotCapped) {
  const auto trace = hunt(0.9, 0, 0, 0.01, 3, 0.85);
  EXPECT_FALSE(estimate_capped(trace.sensors.front(), {0, 0.9}, LaunchAxis(trace.stream), kLimit));
  const auto found = estimate_energy(trace, {});
  EXPECT_THAT(found.quantities.at("energy").method, HasSubstr("counter regression"));
  EXPECT_NEAR(found.quantities.at("energy").value, 0.85 * kTruth, 0.02 * kTruth);
}

TEST(PowerCap, ABoardThatSitsSteadilyBelowItsLimitIsTakenAsItIs) {
  for (const double level : {0.93, 0.95, 0.985}) {  // a stuck cap bit, or a controller's dead band
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      EnergyOptions options;
      options.combine_sensors = false;
      const auto found =
          estimate_energy(hunt(0.9, 0.05 * static_cast<double>(seed), 0.0005, 0.004, seed, level), options);
      ASSERT_TRUE(found.quantities.contains("energy")) << found.message;
      sum += found.quantities.at("energy").value / 20;
    }
    EXPECT_NEAR(sum, level * kTruth, 0.003 * level * kTruth) << level;
  }
}

/// Nothing slows the GPU down before 0.9 s, although it draws more than its limit.
EnergyTrace before_the_limit_acts(double level, std::uint64_t seed) {
  EnergyTrace trace = hunt(0.9, 0, 0, 0.004, seed, level);
  for (auto& [when, state] : trace.gpu) state.clock_reasons.clear();
  return trace;
}

TEST(PowerCap, EnergyOfLongRunsIsInTheIntervalBeforeTheLimitActs) {
  for (const double level : {1.02, 1.045, 1.115}) {
    const auto found = estimate_energy(before_the_limit_acts(level, 7), {});
    ASSERT_TRUE(found.quantities.contains("energy")) << found.message;
    const auto& energy = found.quantities.at("energy");
    EXPECT_EQ(energy.provenance, Provenance::modelled);
    EXPECT_EQ(found.quantities.at("time").provenance, Provenance::measured);
    EXPECT_NEAR(found.quantities.at("power").value, kLimit, 1e-9);
    EXPECT_FALSE(found.warnings.empty());
    for (const double slowdown : {0.0, 0.1, 0.4, 0.5})  // the limit is kept by longer launches
      EXPECT_NEAR(energy.value, kTruth * std::pow(level, slowdown), found.half_width) << level << " " << slowdown;
    EXPECT_LT(found.half_width, (0.3 * (level - 1) + 0.012) * kTruth) << "no wider than what is unknown";
  }
}

TEST(PowerCap, PowerWithinTheErrorOfTheLimitAndThatOfAReferenceIsTakenAsItIs) {
  const auto at_limit = estimate_energy(before_the_limit_acts(1, 7), {});
  EXPECT_EQ(at_limit.quantities.at("energy").provenance, Provenance::measured);
  EnergyOptions options;
  options.whole_budget = true;
  const auto reference = estimate_energy(before_the_limit_acts(1.1, 7), options);
  EXPECT_NEAR(reference.quantities.at("energy").value, 1.1 * kTruth, 0.01 * kTruth);
}

/// Readings of 0.1 s each: so many launches in each, and a power that follows the rate from `limit` at kLaunches.
constexpr double kLaunches = 1e6;
std::optional<CappedEstimate> capped(const std::vector<double>& launches, double elasticity, double limit,
                                     const std::vector<double>& levels) {
  LaunchStream stream;
  stream.marks.push_back({0, 0, 0, 0});
  SensorTrace sensor{sensor_info("power", SensorKind::instantaneous_power, 0.1, 0), {}, {}};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const double t = 0.1 * static_cast<double>(i + 1);
    stream.marks.push_back({t, 0, t, stream.marks.back().launches + static_cast<std::uint64_t>(launches[i])});
    sensor.readings.push_back(
        {t - 0.05, launches[i] > 0 ? levels[i] * limit * std::pow(launches[i] / kLaunches, elasticity) : 0});
  }
  return estimate_capped(sensor, {0, 100}, LaunchAxis(stream), limit);
}
/// A host that launches by itself is no steady one: its rate moves by some per cent, and the GPU's power does not
/// follow.
TEST(PowerCap, ABoardBelowItsLimitIsTakenAsItIsHoweverUnsteadyItsHost) {
  for (const double level : {0.94, 0.979}) {
    int modelled = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      std::vector<double> launches;
      std::vector<double> watts;
      for (int i = 0; i < 9; ++i)
        launches.push_back(1e6 * (1 + 0.006 * random.normal())), watts.push_back(level * (1 + 0.002 * random.normal()));
      modelled += capped(launches, 0, 250, watts).has_value();
    }
    EXPECT_LE(modelled, 2) << level;
  }
}

/// Looks at a GPU every 0.1 s: where its power limit (700 W, or what is said) holds it down.
std::optional<double> binds(const std::vector<int>& capped, TimeSpan span = {0, 10}, double watts = kLimit) {
  EnergyTrace trace;
  for (std::size_t i = 0; i < capped.size(); ++i) {
    DeviceState state;
    state.power_limit_w = watts;
    if (capped[i]) state.clock_reasons = {"thermal", "power_cap"};
    trace.gpu.emplace_back(static_cast<double>(i), state);
  }
  return binding_power_limit(trace, span);
}

TEST(PowerCap, BindsWhereHalfOfTheLooksAndTheLastSaySo) {
  EXPECT_EQ(binds({0, 0, 1, 1}), kLimit);
  EXPECT_EQ(binds({0, 0, 1}), std::nullopt);
  EXPECT_EQ(binds({1, 1, 1, 0}), std::nullopt);
  EXPECT_EQ(binds({1}), kLimit);
  EXPECT_EQ(binds({}), std::nullopt) << "nobody looked";
  EXPECT_EQ(binds({0, 0, 0, 0, 1, 1, 0, 0}, {4, 5}), kLimit) << "what was before and after does not count, its ends do";
  EXPECT_EQ(binds({1, 1, 1, 1, 0, 1}, {4, 5}), kLimit);
  EXPECT_EQ(binds({1, 1, 1, 0, 0, 1}, {3, 5}), std::nullopt);
  EXPECT_EQ(binds({1, 1}, {0, 10}, 0.5), 0.5) << "a module's";
  EXPECT_EQ(binds({1, 1}, {0, 10}, 0), std::nullopt) << "no limit";
}

TEST(Repeatability, WidensTheIntervalButIsNotRequestedForPrecision) {
  auto trace = hunt(1.0, 0, 0, 0.001, 5);
  for (auto& [when, state] : trace.gpu) state.clock_reasons.clear();
  const auto plain = estimate_energy(trace, {});
  trace.sensors.front().info.repeatability = 0.009;
  const auto whole = estimate_energy(trace, {});
  EXPECT_EQ(whole.status, Status::ok) << whole.message;
  EXPECT_EQ(plain.scatter_half_width, whole.scatter_half_width);
  EXPECT_NEAR(whole.half_width, std::hypot(plain.half_width, 1.96 * 0.009 * kTruth), 1e-4 * kTruth);
  EXPECT_NEAR(1.96 * whole.quantities.at("energy").standard_error, whole.half_width, 1e-4 * kTruth);
}

TEST(Gain, ItsUncertaintyIsAPartOfTheInterval) {
  auto trace = hunt(1.0, 0, 0, 0.001, 5);
  for (auto& [when, state] : trace.gpu) state.clock_reasons.clear();
  const auto plain = estimate_energy(trace, {});
  auto& info = trace.sensors.front().info;
  info.gain_error = 0.03;
  info.level = 500;
  info.level_error = 5;
  const auto metered = estimate_energy(trace, {});
  EXPECT_EQ(metered.status, Status::ok) << "longer measuring would not make it smaller";
  const double watts = kLimit, error = std::hypot(5.0, 0.03 * (watts - 500)) / watts;
  EXPECT_NEAR(metered.half_width, std::hypot(plain.half_width, 1.96 * error * kTruth), 1e-3 * kTruth);
  EXPECT_NEAR(1.96 * metered.quantities.at("power").standard_error / watts, 1.96 * error, 2e-3);
}

}  // namespace
}  // namespace ergotune
