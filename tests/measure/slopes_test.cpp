// What the slope of a sensor's energy has to be, whatever it is measured in; and what a sensor does not say.
#include <gmock/gmock.h>

#include "kept_numbers.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

const EnergyAxis kSeconds = [](double t) { return t; };

/// Readings of a sensor every `step` s from `step` on.
SensorTrace readings_of(SensorInfo info, double step, const std::vector<double>& values) {
  info.id = "test";
  SensorTrace trace{std::move(info), {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    trace.readings.push_back({step * static_cast<double>(i + 1), values[i]});
  return trace;
}

/// A counter whose power rises by `rise` W per second from 100 W, with ticks of `tick` s that it stamps itself.
SensorTrace rising_counter(double seconds, double tick, double rise, double noisy = 0) {
  std::vector<double> joules;
  for (double t = tick; t < seconds + 1e-9; t += tick)
    joules.push_back(100 * t + rise * t * t / 2 + noisy * noise(static_cast<std::uint32_t>(joules.size())));
  return readings_of(test_sensor(SensorKind::cumulative_energy, 0), tick, joules);
}

TEST(Slopes, AreTheSameInWhateverUnitsOfEnergyWorkAndTime) {
  const auto plain = rising_counter(1.5, 0.05, 20, 0.2);
  const auto all_of = [](SensorTrace trace, double joules, double units, double time) {
    trace.info.unit_step = 0.01 * joules;
    for (Reading& reading : trace.readings) reading.value *= joules, reading.time *= time;
    const auto e = estimate_slope(trace, {0, 10 * time},
                                  [=](double t) { return units * (t / time + 0.01 * std::sin(9 * t / time)); });
    EXPECT_TRUE(e.valid) << e.why_not;
    return std::vector<double>{e.value * units / joules, e.standard_error * units / joules, e.drift,
                               static_cast<double>(e.n)};
  };
  const auto kept = all_of(plain, 1, 1, 1);
  EXPECT_NE(kept[2], 0) << "it drifts";
  for (const auto& [joules, units, time] :
       {std::array{1e-9, 1.0, 1.0}, {1e9, 1.0, 1.0}, {1.0, 1e-7, 1.0}, {1.0, 1e7, 1.0}, {1e-9, 1e-7, 1.0}})
    expect_kept(all_of(plain, joules, units, time), kept, 1e-6);
  SensorTrace power = readings_of(test_sensor(SensorKind::instantaneous_power, 0.05), 0.05, {});
  for (int i = 1; i <= 30; ++i)
    power.readings.push_back({0.05 * i, 100 + i + 10 * noise(static_cast<std::uint32_t>(i))});
  const auto kept_power = all_of(power, 1, 1, 1);
  for (const auto& [watts, units] : {std::pair{1e-9, 1.0}, {1e9, 1.0}, {1.0, 1e-7}, {1e-9, 1e7}})
    expect_kept(all_of(power, watts, units, 1), kept_power, 1e-6);
}

TEST(Slopes, FastReadingsOfOneValueAreNotStillUntilTheyLast) {
  SensorInfo info = test_sensor(SensorKind::instantaneous_power, 0.01);
  info.never_still = true;
  std::vector<double> watts(100, 7.0);
  for (std::size_t i = 0; i < 80; ++i) watts[i] = 8 + 0.1 * static_cast<double>(i % 2);
  EXPECT_EQ(estimate_slope(readings_of(info, 0.01, watts), {0, 10}, kSeconds).why_not, "") << "twenty, in 0.19 s";
  for (std::size_t i = 20; i < 100; ++i) watts[i] = 7;
  EXPECT_THAT(estimate_slope(readings_of(info, 0.01, watts), {0, 10}, kSeconds).why_not,
              HasSubstr("stood still at 7 W"));
}

}  // namespace
}  // namespace ergotune
