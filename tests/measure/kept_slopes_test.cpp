// What the estimators make of given traces stays what it was, interval and degrees of freedom too; and is right.
#include <gmock/gmock.h>

#include "ergotune/base/statistics.hpp"
#include "kept_numbers.hpp"
#include "measure/energy_series.hpp"
#include "measure/estimate.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

const EnergyAxis kSeconds = [](double t) { return t; };
const EnergyAxis kLaunches = [](double t) { return 500 * t + 3 * std::sin(5 * t); };

std::vector<double> numbers(const SlopeEstimate& e) {
  EXPECT_TRUE(e.valid) << e.why_not;
  return {e.value,        e.standard_error, e.degrees,   static_cast<double>(e.n), e.covered.from,
          e.covered.to,   e.drift,          e.systematic, e.half_width(),           static_cast<double>(e.warnings.size())};
}

/// W that `span` really had.
double truth(TimeSpan span) { return (test_energy(span.to) - test_energy(span.from)) / span.length(); }

TEST(KeptSlopes, OfACounterOfManyIncrements) {
  SensorInfo info = test_sensor(SensorKind::cumulative_energy, 0.1, 0, 0.05);
  info.unit_step = 0.5;
  info.offset = 3;
  info.gain_error = 0.01;
  info.level = 200;
  info.level_error = 2;
  const auto trace = trace_of_test_power(info, 0, 8, 0.002);
  const auto e = estimate_slope(trace, {0.3, 7.7}, kSeconds, {{2.05, 2.2}, {5, 5.01}});
  EXPECT_NEAR(e.value, truth(e.covered) + 3, 3);
  expect_kept(numbers(e), {304.7175297, 3.979075374, 1000000000, 24, 0.349, 7.649, 0, 0.007408696735, 7.798844426, 0});
  expect_kept(numbers(estimate_slope(trace, {0.3, 7.7}, kLaunches)), {0.6070290208, 0.008673288942, 1000000000, 25, 0.349, 7.649,
      0, 0.007420841547, 0.01699933395, 0});
}

TEST(KeptSlopes, OfACounterOfFewIncrements) {
  SensorInfo info = test_sensor(SensorKind::cumulative_energy, 0.1);
  const auto e = estimate_slope(trace_of_test_power(info, 0, 1.2, 0.003), {0.05, 1.15}, kSeconds);
  EXPECT_NEAR(e.value, truth(e.covered), 10);
  expect_kept(numbers(e), {318.9172355, 4.444775055, 1000000000, 10, 0.1005, 1.0995, 0, 0, 8.711599027, 0});
}

TEST(KeptSlopes, OfASensorThatSleepsBetweenItsWindows) {
  const auto trace = trace_of_test_power(test_sensor(SensorKind::windowed_power, 0.1, 0.025, 0.02), 0, 9, 0.004);
  const auto e = estimate_slope(trace, {0.2, 8.8}, kSeconds, {{3.31, 3.4}});
  EXPECT_NEAR(e.value, truth(e.covered), 5);
  expect_kept(numbers(e), {297.334044, 7.469026211, 19, 85, 0.253, 8.778, 0, 0, 15.63285152, 0});
  const EnergyAxis slow = [](double t) { return 10 * t; };
  const auto same_part = estimate_slope(trace, {0.2, 8.8}, slow);
  EXPECT_THAT(same_part.warnings, testing::Contains(HasSubstr("same part")));
  expect_kept(numbers(same_part), {30.08802601, 0.7437880378, 19, 86, 0.253, 8.778, 0, 0, 1.556766254, 1});
  const EnergyAxis beating = [](double t) { return 13 * t; };
  EXPECT_TRUE(estimate_slope(trace, {0.2, 8.8}, beating).warnings.empty()) << "it sees every part";
}

TEST(KeptSlopes, OfWindowsThatOverlap) {
  SensorInfo info = test_sensor(SensorKind::windowed_power, 0.1, 1.0, 0.03);
  info.unit_step = 20;
  expect_kept(numbers(estimate_slope(trace_of_test_power(info, 0, 7, 0.004), {0.5, 6.5}, kSeconds)), {298.1948593, 4.167295226,
      32.66666667, 50, 0.568, 6.468, 0, 0, 8.48171372, 0});
}

TEST(KeptSlopes, OfASensorThatLags) {
  const auto e = estimate_slope(trace_of_test_power(test_sensor(SensorKind::exponential_power, 0.015, 0.8), -4, 4, 0), {0, 3.5}, kLaunches);
  EXPECT_EQ(e.method, "mean power, lag undone");
  expect_kept(numbers(e), {0.608781941, 0.02760678464, 19, 232, 0.0125, 3.4925, 0, 0, 0.05778166431, 0});
}

TEST(KeptSlopes, OfASensorThatStampsItsReadings) {
  const auto trace = trace_of_test_power(test_sensor(SensorKind::instantaneous_power, 0.01), 0, 0.7, 0);
  expect_kept(numbers(estimate_slope(trace, {0.1, 0.6}, kSeconds)), {316.0190242, 6.028392971, 19, 49, 0.105, 0.595,
      0.06757323145, 0, 12.6175715, 0});
}

TEST(KeptSlopes, UndoneLagIsTheSlopeBetweenNeighbours) {
  const auto power = undo_exponential_lag({{0, 100}, {1, 110}, {3, 130}, {3, 130}, {4, 125}}, 0.5);
  ASSERT_EQ(power.size(), 3u);
  EXPECT_DOUBLE_EQ(power[0].value, 110 + 0.5 * 30 / 3);
  EXPECT_DOUBLE_EQ(power[1].value, 130 + 0.5 * 20 / 2);
  EXPECT_DOUBLE_EQ(power[2].value, 130 + 0.5 * -5 / 1);
  EXPECT_TRUE(undo_exponential_lag({{1, 5}, {1, 6}, {1, 7}}, 0.5).empty()) << "no time has passed";
}

TEST(Slopes, AnEstimateOfNoUseHasNoInterval) {
  SlopeEstimate e;
  EXPECT_TRUE(std::isinf(e.half_width()));
  e.valid = true;
  e.standard_error = 2;
  EXPECT_TRUE(std::isinf(e.half_width()));
  e.degrees = 1;
  EXPECT_NEAR(e.half_width(), 2 * 12.7062047, 1e-5);
}

TEST(Slopes, AValueThatStandsStillIsNoPower) {
  SensorInfo info = test_sensor(SensorKind::instantaneous_power, 0.1);
  info.never_still = true;
  const auto says = [&](const std::vector<double>& watts) {
    SensorTrace trace{info, {}, {}};
    for (std::size_t i = 0; i < watts.size(); ++i) trace.readings.push_back({0.1 * static_cast<double>(i + 1), watts[i]});
    return estimate_slope(trace, {0, 10}, kSeconds).why_not;
  };
  EXPECT_THAT(says({7, 7, 7, 7, 7}), HasSubstr("it stood still at 7 W")) << "all of them";
  EXPECT_EQ(says({7, 7, 7, 7}), "") << "too few to tell";
  EXPECT_EQ(says({7, 7, 7, 7, 7, 8}), "");
  EXPECT_THAT(says({9, 7, 7, 7, 7, 7, 7, 7, 7, 8}), HasSubstr("it stood still at 7 W")) << "eight, over 0.7 s";
  EXPECT_EQ(says({9, 7, 7, 7, 7, 7, 7, 7, 8, 9}), "");
  EXPECT_THAT(says({0, 0, 0}), HasSubstr("it reads no power"));
  EXPECT_THAT(says({5, 6}), HasSubstr("only 2 readings"));
  EXPECT_EQ(says({5, 6, 5}), "");
}

std::vector<double> wandering(std::size_t n) {
  std::vector<double> values;
  double level = 100;
  for (std::size_t i = 0; i < n; ++i) {
    level += 2 * noise(static_cast<std::uint32_t>(i));
    values.push_back(level + noise(static_cast<std::uint32_t>(i + 7777)));
  }
  return values;
}

TEST(KeptSeries, MeansOfCorrelatedValues) {
  std::vector<double> found;
  for (const std::size_t n : {1, 2, 3, 4, 5, 19, 20, 37, 100})
    for (const SeriesMean& mean : {batch_mean(wandering(n)), overlapping_mean(wandering(n), 0.5, 0.1)})
      found.insert(found.end(), {mean.mean, std::isinf(mean.standard_error) ? -1 : mean.standard_error, mean.degrees});
  expect_kept(found, {99.81266844, -1, 0, 99.81266844, -1, 0, 99.74732894, 0.06533950253, 1, 99.74732894, -1, 0, 99.9559426,
      0.2119970343, 2, 99.9559426, 0.732148493, 1.333333333, 100.0114533, 0.15985245, 3, 100.0114533, 0.5960450232, 2,
      100.1242812, 0.1675166735, 4, 100.1242812, 0.5627670405, 2.666666667, 101.3704412, 0.5706394572, 18, 101.3704412,
      0.5960131303, 12, 101.4249743, 0.6115988816, 19, 101.4249743, 0.5796567004, 12.66666667, 101.3020377, 0.4575440313, 19,
      101.3020377, 0.4072294623, 24, 99.77661107, 1.124945139, 19, 99.77661107, 0.250403574, 66});
  EXPECT_EQ(batch_mean({}).mean, 0);
  EXPECT_TRUE(std::isinf(batch_mean(wandering(1)).standard_error));
}

TEST(KeptSeries, ADriftIsToldWhereItIsSure) {
  std::vector<double> times, values;
  for (std::uint32_t i = 0; i < 30; ++i) {
    times.push_back(0.1 * i);
    values.push_back(1 + 0.01 * i + 0.02 * noise(i));
  }
  expect_kept({significant_drift(times, values)}, {0.2867424141});
  EXPECT_EQ(significant_drift(std::span(times).first(5), std::span(values).first(5)), 0) << "too few to tell";
  EXPECT_NE(significant_drift(std::span(times).first(6), std::span(values).first(6)), 0);
  for (double& value : values) value = 1 + 50 * (value - 1) * noise(static_cast<std::uint32_t>(1000 * value));
  EXPECT_EQ(significant_drift(times, values), 0);
}

TEST(KeptSeries, UpdatesOfPolledAndStampedSensors) {
  const std::vector<Reading> polled = {{0, 5}, {0.01, 5}, {0.02, 6}, {0.03, 6}, {0.04, 6}, {0.05, 6}, {0.06, 6},
                                       {0.07, 7}, {0.08, 7}, {0.2, 7}, {0.21, 7}};
  std::vector<double> found;
  for (const double period : {0.0, 0.02, 0.03, 0.1})
    for (const Reading& update : power_updates(polled, period)) found.insert(found.end(), {update.time, update.value});
  expect_kept(found, {0, 5, 0.01, 5, 0.02, 6, 0.03, 6, 0.04, 6, 0.05, 6, 0.06, 6, 0.07, 7, 0.08, 7, 0.2, 7, 0.21, 7, 0, 5, 0.015,
      6, 0.04, 6, 0.05, 6, 0.07, 7, 0.2, 7, 0.015, 6, 0.065, 7, 0.2, 7, 0.015, 6, 0.065, 7, 0.2, 7});
  EXPECT_TRUE(power_updates({}, 0.1).empty());
}

TEST(KeptSeries, TicksOfACounter) {
  std::string trouble;
  std::vector<double> found;
  for (const double period : {0.0, 0.005}) {
    const auto ticks = counter_ticks({{0, 5}, {0.01, 5}, {0.02, 6}, {0.03, 6}, {0.05, 8}, {0.06, 8}}, period, trouble);
    for (const CounterTick& tick : ticks) found.insert(found.end(), {tick.time, tick.uncertainty, tick.value});
  }
  EXPECT_EQ(trouble, "");
  expect_kept(found, {0.015, 0.01, 6, 0.04, 0.02, 8, 0.0175, 0.005, 6, 0.0475, 0.005, 8});
  EXPECT_TRUE(counter_ticks({{0, 5}, {1, 6}}, 0.1, trouble).empty());
  EXPECT_EQ(trouble, "the counter did not move") << "one edge is none";
  trouble.clear();
  counter_ticks({}, 0.1, trouble);
  EXPECT_EQ(trouble, "no reading came");
  const auto stops = [&](double ticks, double still) {
    trouble.clear();
    counter_ticks({{0, 5}, {ticks, 6}, {2 * ticks, 7}, {2 * ticks + still, 7}}, 0, trouble);
    return !trouble.empty();
  };
  EXPECT_FALSE(stops(0.01, 0.49)) << "half a second is nothing";
  EXPECT_TRUE(stops(0.01, 0.52));
  EXPECT_FALSE(stops(0.1, 0.94)) << "ten of its ticks";
  EXPECT_TRUE(stops(0.1, 1.02));
}

TEST(Series, EveryReadingIsAnUpdateWhereNobodyKnowsThePeriod) {
  EXPECT_EQ(power_updates({{1, 5}, {1, 5}, {2, 5}, {2, 5}, {2, 5}}, 0).size(), 5u);
}

TEST(Series, WhenThePolledValueWasSetBeforeTheFirstPollNobodySaw) {
  const auto updates = power_updates({{0, 5}, {0.02, 5}, {0.04, 5}, {0.06, 6}, {0.08, 6}, {0.1, 6}}, 0.1);
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_DOUBLE_EQ(updates[0].time, 0.05);
  EXPECT_EQ(updates[0].value, 6);
}

TEST(Series, TicksOfOneMomentHaveNoPower) {
  const SensorTrace trace{test_sensor(SensorKind::cumulative_energy, 0), {{0, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 9}}, {}};
  const auto series = power_series(trace, {0, 2}, {});
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].watts, 2);
  EXPECT_EQ(series[1].watts, 2);
}

TEST(Series, AStretchLiesInsideOfASpanThatRoundingAloneMakesShorter) {
  const SensorTrace trace{test_sensor(SensorKind::windowed_power, 0.1, 0.1), {{0.1, 50}}, {}};
  const auto inside = [&](double from, double to) { return power_series(trace, {from, to}, {}).size() == 1; };
  EXPECT_TRUE(inside(0, 0.1));
  EXPECT_TRUE(inside(5e-10, 0.1));
  EXPECT_FALSE(inside(2e-9, 0.1));
  EXPECT_TRUE(inside(0, 0.1 - 5e-10));
  EXPECT_FALSE(inside(0, 0.1 - 2e-9));
}

TEST(Series, AReadingWithoutPeriodAndWindowSpeaksOfAMicrosecond) {
  const SensorTrace trace{test_sensor(SensorKind::instantaneous_power, 0), {{1, 50}}, {}};
  const auto series = power_series(trace, {0, 2}, {});
  ASSERT_EQ(series.size(), 1u);
  EXPECT_NEAR(series[0].to - series[0].from, 1e-6, 1e-12);
}

TEST(Series, ADriftIsToldWhereItIsMoreThanThreeOfItsErrors) {
  const std::vector<double> times{0, 0.2, 0.4, 0.6, 0.8, 1};
  bool told = false, silent = false;
  for (const double beside : {0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 4.0}) {
    std::vector<double> relative;
    for (std::size_t i = 0; i < times.size(); ++i) relative.push_back(1 + 0.05 * times[i] + (i % 3 == 1 ? beside : -beside) * 0.01);
    const LineFit line = fit_line(times, relative);
    const bool clear = std::abs(line.slope) > 3 * line.slope_error;
    EXPECT_DOUBLE_EQ(significant_drift(times, relative), clear ? line.slope : 0) << beside << " " << line.slope / line.slope_error;
    (clear ? told : silent) = true;
  }
  EXPECT_TRUE(told && silent);
  EXPECT_EQ(significant_drift(std::vector<double>(5, 1.0), std::vector<double>(5, 1.0)), 0) << "too few";
}

TEST(KeptSeries, StretchesOfTimeThatReadingsSpeakOf) {
  std::vector<double> found;
  for (const auto& [kind, window] : {std::pair{SensorKind::cumulative_energy, 0.0}, {SensorKind::windowed_power, 0.25},
                                     {SensorKind::windowed_power, 0.0}, {SensorKind::exponential_power, 0.3}}) {
    SensorInfo info = test_sensor(kind, 0.1, window, 0.05);
    info.offset = 3;
    for (const PowerOver& p : power_series({info, {{0, 5}, {0.1, 15}, {0.2, 27}, {0.3, 36}, {0.4, 48}}, {}}, {-0.31, 0.36}, {{0.06, 0.07}}))
      found.insert(found.end(), {p.from, p.to, p.watts});
  }
  expect_kept(found, {0.1, 0.2, 93, 0.2, 0.3, 123, -0.3, -0.05, 5, -0.2, 0.05, 15, 0.1, 0.35, 48, -0.1, 0, 5, 0.1, 0.2, 27, 0.2,
      0.3, 36, 0.1, 0.2, 58.5, 0.2, 0.3, 67.5});
  EXPECT_FALSE(touches({{1, 2}}, 0, 1));
  EXPECT_FALSE(touches({{1, 2}}, 2, 3));
  EXPECT_TRUE(touches({{1, 2}}, 0, 1.01) && touches({{1, 2}}, 1.99, 3));
}

TEST(KeptSeries, TimesOfALaunch) {
  std::vector<double> found;
  for (const std::size_t n : {0, 1, 2, 3, 5, 9, 10, 11, 40, 500}) {
    const TimeEstimate e = estimate_time(wandering(n));
    found.insert(found.end(), {e.value, e.standard_error, std::isinf(e.relative_half_width) ? -1 : e.relative_half_width});
  }
  expect_kept(found, {0, 0, -1, 99.81266844, 0, -1, 99.74732894, 0.06533950253, 0.008323201286, 99.9559426, 0.2119970343,
      0.00912551665, 100.1212745, 0.2108023358, 0.009059106065, 100.3885756, 0.1906491271, 0.004646959135, 100.4845602,
      0.1937551433, 0.004956616728, 100.6706309, 0.3261964845, 0.007928569002, 101.3269089, 0.4078883061, 0.008327316579,
      102.2874975, 2.084911895, 0.0401120379});
}

}  // namespace
}  // namespace ergotune
