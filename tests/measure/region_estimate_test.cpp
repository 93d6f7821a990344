// Energy of regions of code, from readings of sensors whose power is known.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "ergotune/energy_region.hpp"
#include "ergotune/error.hpp"
#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "measure/energy/region_monitor.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

constexpr double kEnd = 120, kPeriod = 0.02;
/// 60 W to 140 W.
const test::PowerCurve kPower{100, 40, 0.37};

/// What a sensor reads of the curve from 0 to kEnd.
SensorTrace trace_of(SensorKind kind, double update, double window = 0, double lag = 0) {
  SensorTrace trace;
  trace.info.id = "test";
  trace.info.kind = kind;
  trace.info.update_period = update;
  trace.info.window = window;
  trace.info.lag = lag;
  for (double t = 0; t < kEnd; t += kPeriod) {
    const double at = std::max(0.0, std::floor(t / update) * update - lag);
    double value = kPower.power(at);
    if (kind == SensorKind::cumulative_energy) value = kPower.energy(0, at);
    if (kind == SensorKind::windowed_power) value = kPower.energy(std::max(0.0, at - window), at) / window;
    trace.readings.push_back({t, value});
  }
  return trace;
}

/// Of one that does not see all of the time only the device's limit bounds the rest.
SensorTrace bounded(SensorTrace trace) {
  trace.info.most_power = 400;
  return trace;
}

const SensorTrace kTraces[] = {trace_of(SensorKind::cumulative_energy, 1e-3),
                               trace_of(SensorKind::cumulative_energy, 0.1, 0, 0.03),
                               trace_of(SensorKind::windowed_power, 0.025, 0.025, 0.02),
                               trace_of(SensorKind::windowed_power, 0.1, 0.1, 0.02),
                               trace_of(SensorKind::windowed_power, 0.1, 1, 0.02),
                               bounded(trace_of(SensorKind::windowed_power, 0.1, 0.025, 0.05)),
                               bounded(trace_of(SensorKind::instantaneous_power, 0.1))};

TEST(RegionEnergy, ItsIntervalAndItsBoundHold) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> begin(2, kEnd - 8), decades(-4, 0.7);
  for (const SensorTrace& trace : kTraces) {
    SCOPED_TRACE(fmt::format("{} {} s {} s", to_string(trace.info.kind), trace.info.update_period, trace.info.window));
    int resolved = 0, held = 0;
    for (int i = 0; i < 600; ++i) {
      TimeSpan span;
      span.from = begin(random);
      span.to = span.from + std::pow(10, decades(random));
      const SensorEnergy energy = energy_of_regions(trace, {span}, std::nullopt, kPeriod);
      const double truth = kPower.energy(span.from, span.to);
      ASSERT_TRUE(energy.at_most) << energy.why_not;
      EXPECT_GE(*energy.at_most, truth * (1 - 1e-9)) << span.length();
      if (!energy.joules) continue;
      ++resolved;
      held += std::abs(*energy.joules - truth) <= energy.half_width;
    }
    EXPECT_GT(resolved, 50);
    EXPECT_GE(held, 0.95 * resolved) << resolved;
  }
}

TEST(RegionEnergy, HasNoBoundWhereASensorLooksAway) {
  SensorTrace blinking = trace_of(SensorKind::windowed_power, 0.1, 0.025);
  const SensorEnergy energy = energy_of_regions(blinking, {{5, 5.001}}, std::nullopt, kPeriod);
  EXPECT_FALSE(energy.at_most || energy.joules);
  EXPECT_NE(energy.why_not, "");
}

TEST(RegionEnergy, CountsWhatShortRegionsShareOnce) {
  std::vector<TimeSpan> steps;
  for (int i = 0; i < 300; ++i) steps.push_back({5 + 0.01 * i, 5 + 0.01 * i + 0.005});
  for (const SensorTrace& trace : {kTraces[1], kTraces[2], kTraces[3], kTraces[4]}) {
    const SensorEnergy energy = energy_of_regions(trace, steps, std::nullopt, kPeriod);
    ASSERT_TRUE(energy.at_most);
    EXPECT_LE(*energy.at_most, kPower.energy(3, 10)) << "of two to three seconds and the windows around them";
    std::vector<TimeSpan> twice = steps;
    twice.insert(twice.end(), steps.begin(), steps.end());
    EXPECT_NEAR(*energy_of_regions(trace, twice, std::nullopt, kPeriod).at_most, 2 * *energy.at_most, 1e-6);
  }
}

TEST(RegionEnergy, IsBoundedTheSameHoweverLongTheMachineRuns) {
  constexpr double kUptime = 1 << 20;  // s; doubles are 1e-10 s apart there
  for (const SensorTrace& trace : {kTraces[2], kTraces[3], kTraces[4]}) {
    SensorTrace later = trace;
    for (Reading& reading : later.readings) reading.time += kUptime;
    for (double from = 5; from < 8; from += 0.01) {
      const SensorEnergy here = energy_of_regions(trace, {{from, from + 0.03}}, std::nullopt, kPeriod);
      const SensorEnergy there =
          energy_of_regions(later, {{kUptime + from, kUptime + from + 0.03}}, std::nullopt, kPeriod);
      ASSERT_TRUE(here.at_most && there.at_most);
      EXPECT_GE(*there.at_most, kPower.energy(from, from + 0.03));
      EXPECT_LE(*there.at_most, 1.5 * *here.at_most) << "a window more where rounding decides";
    }
  }
}

TEST(RegionEnergy, BoundsWhatIsTooShortToBeResolved) {
  const SensorTrace& slow = kTraces[1];
  for (double from = 3; from < 4; from += 0.037) {
    const SensorEnergy energy = energy_of_regions(slow, {{from, from + 1e-3}}, std::nullopt, kPeriod);
    EXPECT_FALSE(energy.joules);
    ASSERT_TRUE(energy.at_most);
    EXPECT_GE(*energy.at_most, kPower.energy(from, from + 1e-3));
    EXPECT_EQ(energy.why_not, "");
  }
}

TEST(RegionEnergy, TakesRegionsWithoutGapsAsOne) {
  std::vector<TimeSpan> steps;
  for (int i = 0; i < 200; ++i) steps.push_back({5 + 0.01 * i, 5 + 0.01 * (i + 1)});
  const SensorEnergy apart = energy_of_regions(kTraces[1], steps, std::nullopt, kPeriod);
  const SensorEnergy whole = energy_of_regions(kTraces[1], {{5, 7}}, std::nullopt, kPeriod);
  ASSERT_TRUE(apart.joules && whole.joules);
  EXPECT_NEAR(*apart.joules, *whole.joules, 0.01 * whole.half_width);
  EXPECT_NEAR(apart.half_width, whole.half_width, 0.01 * whole.half_width);
}

TEST(RegionEnergy, NestedRegionsAddUpToWhatLiesAroundThem) {
  const auto of = [](const std::vector<TimeSpan>& spans) {
    return energy_of_regions(kTraces[0], spans, std::nullopt, kPeriod);
  };
  const SensorEnergy whole = of({{5, 9}}), first = of({{5, 7}}), second = of({{7, 9}}), inner = of({{6, 8}});
  EXPECT_NEAR(*first.joules + *second.joules, *whole.joules, whole.half_width);
  EXPECT_NEAR(*of({{5, 9}, {6, 8}}).joules, *whole.joules + *inner.joules, 1e-6) << "each of two that overlap counts";
}

TEST(RegionEnergy, TakesIdlePowerOffWithItsInterval) {
  const SensorEnergy energy = energy_of_regions(kTraces[0], {{5, 9}}, IdlePower{30, 2}, kPeriod);
  ASSERT_TRUE(energy.joules && energy.above_idle);
  EXPECT_NEAR(*energy.above_idle, *energy.joules - 4 * 30, 1e-9);
  EXPECT_NEAR(energy.above_idle_half_width, std::hypot(energy.half_width, 4 * 1.96 * 2), 1e-9);
}

TEST(RegionEnergy, AddsSensorsAndGivesNoSumWhereOneHasNothing) {
  SensorTrace gone = kTraces[0];
  gone.readings.clear();
  gone.failure = "the sensor is gone";
  const std::vector<TimeSpan> spans{{5, 9}};
  const SensorEnergy one = energy_of_regions(kTraces[0], spans, std::nullopt, kPeriod);
  const SensorEnergy none = energy_of_regions(gone, spans, std::nullopt, kPeriod);
  EXPECT_NEAR(*sum_of("work", spans, {one, one}).joules, 2 * *one.joules, 1e-9);
  const RegionEnergy sum = sum_of("work", spans, {one, none});
  EXPECT_FALSE(sum.joules);
  EXPECT_EQ(sum.sensors[1].why_not, "the sensor is gone");
  EXPECT_EQ(sum.seconds, 4);
}

struct EnergyRegions : ::testing::Test {
  test::RaplTree tree;
  test::Writer writer{[this] {
    tree.energy("intel-rapl:0", 50 * host_seconds());
    ::usleep(1000);
  }};
};

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST_F(EnergyRegions, AMovedRegionIsItsNewOwners) {
  const EnergyMonitor monitor({"rapl:package-0"});
  EnergyRegion first(monitor, "work");
  EnergyRegion second = std::move(first);
  rest(0.4);
  first.end();  // NOLINT: nothing is left to end
  EXPECT_THROW(first.energy(), UserError);
  const RegionEnergy energy = second.energy();
  ASSERT_TRUE(energy.joules);
  EXPECT_NEAR(*energy.joules, 50 * energy.seconds, energy.half_width + 1);
  EnergyRegion third(monitor, "other");
  third = EnergyRegion(monitor, "work");
  third.end();
  const auto totals = monitor.totals();
  ASSERT_EQ(totals.size(), 2u) << "the region that was replaced has ended";
  EXPECT_EQ(totals.front().regions, 2u);
}

TEST_F(EnergyRegions, ThatEndAreUnitsOfWorkForAGovernor) {
  const TemporaryFolder folder;
  const auto file = folder.write("progress", "");
  ::setenv("ERGOTUNE_PROGRESS", file.c_str(), 1);
  {
    const EnergyMonitor monitor({"rapl:package-0"});
    for (int i = 0; i < 3; ++i) EnergyRegion(monitor).end();
    EXPECT_EQ(std::filesystem::file_size(file), 3u);
  }
  ::unsetenv("ERGOTUNE_PROGRESS");
}

TEST_F(EnergyRegions, IdlePowerIsMeasuredOrGiven) {
  EnergyMonitor monitor({"rapl:package-0"});
  EXPECT_THROW(monitor.set_idle_power({1, 2}), UserError);
  EXPECT_THROW(monitor.set_idle_power({-1}), UserError);
  EXPECT_THROW(monitor.measure_idle(0), UserError);
  EnergyRegion before(monitor);
  rest(0.4);
  EXPECT_FALSE(before.energy().above_idle);
  monitor.measure_idle(0.4);
  const RegionEnergy energy = before.energy();
  ASSERT_TRUE(energy.above_idle);
  EXPECT_NEAR(*energy.above_idle, 0, energy.above_idle_half_width + 1);
}

}  // namespace
}  // namespace ergotune
