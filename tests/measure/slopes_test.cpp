// What the slope of a sensor's energy has to be, whatever it is measured in; and what a sensor does not say.
#include <gmock/gmock.h>

#include "kept_numbers.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::HasSubstr;

const EnergyAxis kSeconds = [](double t) { return t; };

/// Readings of a sensor every `step` s from `step` on.
SensorTrace readings_of(SensorInfo info, double step, const std::vector<double>& values) {
  info.id = "test";
  SensorTrace trace{std::move(info), {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i) trace.readings.push_back({step * static_cast<double>(i + 1), values[i]});
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
    const auto e = estimate_slope(trace, {0, 10 * time}, [=](double t) { return units * (t / time + 0.01 * std::sin(9 * t / time)); });
    EXPECT_TRUE(e.valid) << e.why_not;
    return std::vector<double>{e.value * units / joules, e.standard_error * units / joules, e.drift, static_cast<double>(e.n)};
  };
  const auto kept = all_of(plain, 1, 1, 1);
  EXPECT_NE(kept[2], 0) << "it drifts";
  for (const auto& [joules, units, time] : {std::array{1e-9, 1.0, 1.0}, {1e9, 1.0, 1.0}, {1.0, 1e-7, 1.0}, {1.0, 1e7, 1.0}, {1e-9, 1e-7, 1.0}})
    expect_kept(all_of(plain, joules, units, time), kept, 1e-6);
  SensorTrace power = readings_of(test_sensor(SensorKind::instantaneous_power, 0.05), 0.05, {});
  for (int i = 1; i <= 30; ++i) power.readings.push_back({0.05 * i, 100 + i + 10 * noise(static_cast<std::uint32_t>(i))});
  const auto kept_power = all_of(power, 1, 1, 1);
  for (const auto& [watts, units] : {std::pair{1e-9, 1.0}, {1e9, 1.0}, {1.0, 1e-7}, {1e-9, 1e7}})
    expect_kept(all_of(power, watts, units, 1), kept_power, 1e-6);
}

TEST(Slopes, ARiseIsADriftOverTheMiddlesOfTheFirstAndTheLastIncrement) {
  for (const double tick : {0.2, 0.01}) {  // 20 increments, and 400 that become 20
    const auto e = estimate_slope(rising_counter(4 + 2 * tick, tick, 5), {0, 5}, kSeconds);
    ASSERT_TRUE(e.valid) << e.why_not;
    EXPECT_NEAR(e.drift, 5 * 3.8 / e.value, 2e-3) << tick;
  }
}

TEST(Slopes, FortyIncrementsAndMoreBecomeAboutTwenty) {
  const auto increments = [](int count) { return estimate_slope(rising_counter(0.1 * count + 0.2, 0.1, 0, 1), {0, 100}, kSeconds).n; };
  EXPECT_EQ(increments(39), 39);
  EXPECT_EQ(increments(40), 20);
  EXPECT_EQ(increments(59), 30);
  EXPECT_EQ(increments(60), 20);
}

TEST(Slopes, AnIncrementThatEndsWithTheSpanBelongsToIt) {
  // edges in the middle of eighths: 3/16, 5/16, ...
  const auto trace = rising_counter(2, 0.125, 0, 1);
  EXPECT_EQ(estimate_slope(trace, {0.3125, 0.9375}, kSeconds).n, 5);
  EXPECT_EQ(estimate_slope(trace, {0.313, 0.937}, kSeconds).n, 3);
  EXPECT_DOUBLE_EQ(estimate_slope(trace, {0.3125, 0.9375}, kSeconds).covered.from, 0.3125);
}

TEST(Slopes, ACounterThatJumpsByMoreThanABoardDrawsIsNotBelieved) {
  auto trace = rising_counter(2, 0.1, 0);
  trace.info.most_power = 150;
  EXPECT_TRUE(estimate_slope(trace, {0, 2}, kSeconds).valid);
  for (std::size_t i = 10; i < trace.readings.size(); ++i) trace.readings[i].value += 10;
  EXPECT_THAT(estimate_slope(trace, {0, 2}, kSeconds).why_not, HasSubstr("200 W, far above"));
}

TEST(Slopes, FewReadingsThatCannotBeAreLeftOutAndManyAreAFailure) {
  std::vector<double> watts(40, 100.0);
  for (std::size_t i = 0; i < watts.size(); ++i) watts[i] += noise(static_cast<std::uint32_t>(i));
  watts[7] = 1e5;
  SensorInfo info = test_sensor(SensorKind::instantaneous_power, 0.1);
  info.most_power = 1000;
  const auto few = estimate_slope(readings_of(info, 0.1, watts), {0, 10}, kSeconds);
  EXPECT_NEAR(few.value, 100, 0.5) << few.why_not;
  for (std::size_t i = 10; i < 15; ++i) watts[i] = 1e5;
  const auto many = estimate_slope(readings_of(info, 0.1, watts), {0, 10}, kSeconds);
  EXPECT_FALSE(many.valid);
  EXPECT_THAT(many.why_not, HasSubstr("far above"));
}

TEST(Slopes, TellWhetherAMeterCorrectedTheSensorAndWhereItFailed) {
  SensorTrace trace = readings_of(test_sensor(SensorKind::instantaneous_power, 0.1), 0.1, {100, 101, 99, 100, 102, 98, 100});
  EXPECT_FALSE(estimate_slope(trace, {0, 10}, kSeconds).metered);
  trace.info.offset = 2;
  EXPECT_TRUE(estimate_slope(trace, {0, 10}, kSeconds).metered);
  trace.info.offset = 0;
  trace.info.gain = 1.1;
  EXPECT_TRUE(estimate_slope(trace, {0, 10}, kSeconds).metered);
  trace.failure = "it is gone";
  EXPECT_THAT(estimate_slope(trace, {0, 10}, kSeconds).warnings, Contains("test failed on the way: it is gone"));
  EXPECT_THAT(estimate_slope(trace, {0, 0.3}, kSeconds).why_not, HasSubstr("readings whose window lies in the 0.30 s measured; it is gone"));
}

TEST(Slopes, ReadingsWithoutALaunchSayNothingOfOne) {
  const auto trace = readings_of(test_sensor(SensorKind::instantaneous_power, 0.1), 0.1, {100, 101, 100, 50, 51, 50, 100, 101, 100});
  const EnergyAxis rests = [](double t) { return std::min(t, 0.34) + std::max(0.0, t - 0.66); };
  const auto e = estimate_slope(trace, {0, 10}, rests);
  EXPECT_TRUE(e.valid) << e.why_not;
  EXPECT_EQ(e.n, 6);
}

TEST(Slopes, WindowsThatOverlapTellNoDrift) {
  std::vector<double> watts;
  for (int i = 0; i < 40; ++i) watts.push_back(100 + 5 * i + noise(static_cast<std::uint32_t>(i)));
  const auto drift = [&](double window) {
    const auto trace = readings_of(test_sensor(SensorKind::windowed_power, 0.1, window), 0.1, watts);
    return estimate_slope(trace, {-10, 10}, kSeconds).drift;
  };
  EXPECT_EQ(drift(1), 0) << "each holds what the one before did";
  EXPECT_GT(drift(0.1), 0.5);
}

TEST(Slopes, TheirMethodIsNamedAfterTheSensorsKind) {
  const auto method = [](SensorKind kind, double window) {
    return estimate_slope(readings_of(test_sensor(kind, 0.1, window), 0.1, {100, 101, 99, 100, 102, 98, 100}), {-10, 10}, kSeconds).method;
  };
  EXPECT_EQ(method(SensorKind::windowed_power, 0.1), "window mean");
  EXPECT_EQ(method(SensorKind::windowed_power, 0), "mean power");
  EXPECT_EQ(method(SensorKind::instantaneous_power, 0), "mean power");
  EXPECT_EQ(method(SensorKind::exponential_power, 0.1), "mean power, lag undone");
}

TEST(Slopes, FastReadingsOfOneValueAreNotStillUntilTheyLast) {
  SensorInfo info = test_sensor(SensorKind::instantaneous_power, 0.01);
  info.never_still = true;
  std::vector<double> watts(100, 7.0);
  for (std::size_t i = 0; i < 80; ++i) watts[i] = 8 + 0.1 * static_cast<double>(i % 2);
  EXPECT_EQ(estimate_slope(readings_of(info, 0.01, watts), {0, 10}, kSeconds).why_not, "") << "twenty, in 0.19 s";
  for (std::size_t i = 20; i < 100; ++i) watts[i] = 7;
  EXPECT_THAT(estimate_slope(readings_of(info, 0.01, watts), {0, 10}, kSeconds).why_not, HasSubstr("stood still at 7 W"));
}

/// Whether a sensor that looks for `window` of every 0.1 s warns, where each of its `phases` (of a launch) is seen in turn and `rate`
/// launches go by in a second.
bool warns(double window, double rate, const std::vector<double>& phases) {
  std::vector<double> watts;
  for (std::size_t i = 0; i < phases.size(); ++i) watts.push_back(100 + noise(static_cast<std::uint32_t>(i)));
  const auto trace = readings_of(test_sensor(SensorKind::windowed_power, 0.1, window), 0.1, watts);
  const EnergyAxis axis = [&](double t) {
    const double middle = t + window / 2;
    const auto i = static_cast<std::size_t>(std::clamp(std::round(middle / 0.1) - 1, 0.0, static_cast<double>(phases.size() - 1)));
    return std::floor(rate * middle) + phases[i] + 1e-6 * t;
  };
  const auto found = estimate_slope(trace, {-1, 10}, rate > 0 ? axis : kSeconds).warnings;
  return !found.empty();
}

TEST(Slopes, ASensorThatSleepsWarnsOfTheSamePartOfALaunch) {
  const std::vector<double> same(10, 0.3);
  EXPECT_TRUE(warns(0.025, 10, same));
  EXPECT_TRUE(warns(0.025, 10, std::vector<double>(4, 0.3)));
  EXPECT_FALSE(warns(0.025, 10, std::vector<double>(3, 0.3))) << "too few to tell";
  EXPECT_FALSE(warns(0.1, 10, same)) << "it never sleeps";
  EXPECT_TRUE(warns(0.025, 150, same)) << "3.75 launches in a window";
  EXPECT_FALSE(warns(0.025, 180, same)) << "4.5";
  EXPECT_FALSE(warns(0.025, 10, {0, 0, 0, 0.5})) << "half a direction";
  EXPECT_FALSE(warns(0.025, 10, {0.25, 0.25, 0.25, 0.75}));
  EXPECT_TRUE(warns(0.025, 10, {0, 0, 0, 0.25})) << "hypot(3, 1) of four";
}

}  // namespace
}  // namespace ergotune
