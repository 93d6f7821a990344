// Energy, power and time per launch of given traces stay what they were; what is told of them, and when a board counts as settled.
#include <gmock/gmock.h>

#include "kept_numbers.hpp"
#include "measure/energy_capped.hpp"
#include "measure/energy_plausible.hpp"
#include "measure/span_energy.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// A second by the host's clock whose marks the host sees late, with one pause; `rate` launches per second.
LaunchStream stream_of(double seconds, double rate = 1000, bool device_time = true) {
  LaunchStream stream;
  double launches = 0;
  for (int i = 0; 0.01 * i <= seconds + 1e-9; ++i) {
    const double t = 0.01 * i, late = 0.003 * (noise(static_cast<std::uint32_t>(i)) + 0.5);
    stream.marks.push_back({t + (device_time ? late : 0), 0, device_time ? t : 0, static_cast<std::uint64_t>(launches)});
    if (i % 70 != 69) launches += std::floor(0.01 * rate * (1 + 0.1 * noise(static_cast<std::uint32_t>(i + 99))));
  }
  return stream;
}

EnergyTrace energy_trace(const std::vector<SensorInfo>& sensors, double seconds = 3) {
  EnergyTrace trace;
  trace.stream = stream_of(seconds);
  for (const SensorInfo& info : sensors) trace.sensors.push_back(trace_of_test_power(info, 0, seconds, 0.002));
  for (int i = 0; 0.1 * i <= seconds; ++i) {
    BoardState state;
    state.core_clock_mhz = 1400 + 10 * noise(static_cast<std::uint32_t>(i));
    state.memory_clock_mhz = 1593;
    state.temperature_c = 50 + 0.5 * i;
    state.core_voltage_v = 0.8 + 0.01 * noise(static_cast<std::uint32_t>(i + 50));
    state.clock_reasons = {"thermal_slowdown", "idle", "application_clocks"};
    state.foreign_processes = std::vector<int>{4242, 7};
    trace.board.emplace_back(0.1 * i, state);
  }
  trace.settled_at = 0.4;
  return trace;
}

std::vector<double> numbers(const EnergyResult& result) {
  std::vector<double> all{result.half_width, result.scatter_half_width, result.drift, result.measured.from, result.measured.to};
  for (const auto& [name, q] : result.quantities) all.insert(all.end(), {q.value, q.standard_error, static_cast<double>(q.n)});
  return all;
}

TEST(KeptEnergy, OfACounterAndABoard) {
  SensorInfo counter = test_sensor(SensorKind::cumulative_energy, 0.1);
  counter.repeatability = 0.009;
  counter.gain_error = 0.01;
  EnergyOptions options;
  options.idle_power = 60;
  options.idle_power_error = 2;
  options.correction = EnergyOptions::TemperatureCorrection{40, 0.8, 0.1};
  const EnergyResult result = estimate_energy(energy_trace({counter}), options);
  EXPECT_EQ(result.quantities.size(), 9u);
  expect_kept(numbers(result), {0.03821418177, 0.01124404507, 0, 0.4, 3.000091186, 1399984783, 594000.2294, 27, 0.8001041086,
      0.0006171747165, 27, 0.2949603183, 0.0195930623, 17, 0.3104313377, 0.01949738979, 17, 0.247710989, 0.01961037564, 17,
      1593000000, 0, 27, 297.0737213, 18.52206464, 17, 58.5, 0.7637626158, 27, 0.001045339145, 3.639623147e-06, 2449});
  EXPECT_THAT(result.warnings, Contains("thermal slowdown"));
  EXPECT_THAT(result.warnings, Not(Contains("idle")));
  EXPECT_THAT(result.warnings, Not(Contains("application clocks")));
  EXPECT_THAT(result.warnings, Contains("2 foreign process(es) on the device, first pid 7"));
  EXPECT_THAT(result.warnings, Contains("temperature changed by 13 degrees while it was measured"));
  EXPECT_EQ(result.quantities.at("corrected_energy").provenance, Provenance::modelled);
}

TEST(KeptEnergy, OfSeveralSensorsTogether) {
  const std::vector<SensorInfo> sensors = {test_sensor(SensorKind::windowed_power, 0.02, 0.02, 0.01),
                                           test_sensor(SensorKind::windowed_power, 0.1, 0.025)};
  EnergyOptions options;
  expect_kept(numbers(estimate_energy(energy_trace(sensors), options)), {0.03092124169, 0.03092124169, -0.1248752602, 0.4,
      3.000091186, 1399984783, 594000.2294, 27, 0.8001041086, 0.0006171747165, 27, 0.3129919401, 0.01577643361, 147, 1593000000,
      0, 27, 299.407489, 16.23967427, 147, 58.5, 0.7637626158, 27, 0.001045339145, 3.639623147e-06, 2449});
  options.combine_sensors = false;
  expect_kept(numbers(estimate_energy(energy_trace(sensors), options)), {0.0321814005, 0.0321814005, -0.1248752602, 0.4,
      3.000091186, 1399984783, 594000.2294, 27, 0.8001041086, 0.0006171747165, 27, 0.3125170996, 0.0164193836, 125, 1593000000, 0,
      27, 299.0885686, 16.27552791, 125, 58.5, 0.7637626158, 27, 0.001045339145, 3.639623147e-06, 2449});
  options.precision = 0.5;
  EXPECT_EQ(estimate_energy(energy_trace(sensors), options).status, Status::ok);
  options.precision = 1e-4;
  EXPECT_EQ(estimate_energy(energy_trace(sensors), options).status, Status::not_converged);
  options.whole_budget = true;
  EXPECT_EQ(estimate_energy(energy_trace(sensors), options).status, Status::ok) << "a reference";
}

TEST(KeptEnergy, WhatIsKnownTooBadlyIsNoResult) {
  EnergyTrace trace = energy_trace({test_sensor(SensorKind::cumulative_energy, 0.1)});
  trace.sensors[0].info.gain_error = 0.24;
  EXPECT_EQ(estimate_energy(trace, {}).quantities.count("energy"), 1u) << "47 %";
  trace.sensors[0].info.gain_error = 0.27;
  const EnergyResult result = estimate_energy(trace, {});
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_THAT(result.message, HasSubstr("known to +-5"));
  EXPECT_EQ(result.quantities.count("energy") + result.quantities.count("power"), 0u);
  EXPECT_EQ(result.quantities.count("time"), 1u);
}

TEST(KeptEnergy, TimesOfLaunches) {
  std::vector<double> found;
  for (const bool device_time : {true, false}) {
    const LaunchAxis axis(stream_of(5, 1000, device_time));
    const auto per = axis.time_per_launch({0.2, 4.5});
    found.insert(found.end(), {axis.begin(), axis.end(), per.seconds, per.standard_error, static_cast<double>(per.launches)});
    for (const double t : {-1.0, 0.0, 0.005, 1.234, 3.0, 4.999, 6.0}) found.push_back(axis.launches_at(t));
    for (const TimeSpan& pause : axis.pauses()) found.insert(found.end(), {pause.from, pause.to});
  }
  expect_kept(found, {5.562105984e-05, 5.000014602, 0.001046760451, 2.922534721e-06, 4041, 0, 0, 4.94437894, 1164.944379,
      2826.986858, 4705.086858, 4706, 0.6900556211, 0.7000556211, 1.390055621, 1.400055621, 2.090055621, 2.100055621, 2.790014602,
      2.800014602, 3.490014602, 3.500014602, 4.190014602, 4.200014602, 4.890014602, 4.900014602, 0, 5, 0.001046655147,
      2.764960157e-06, 4051, 0, 0, 5, 1165, 2827, 4705.1, 4706, 0.69, 0.7, 1.39, 1.4, 2.09, 2.1, 2.79, 2.8, 3.49, 3.5, 4.19, 4.2,
      4.89, 4.9});
  EXPECT_EQ(LaunchAxis(LaunchStream{}).launches_at(1), 0);
  EXPECT_EQ(LaunchAxis(LaunchStream{}).time_per_launch({0, 1}).launches, 0);
}

TEST(KeptEnergy, AGapOfLessThanHalfAMillisecondIsNoPause) {
  LaunchStream stream;
  stream.marks = {{0, 0, 0, 0}, {1, 0, 1, 100}, {1.0004, 0, 1.0004, 100}, {2, 0, 2, 200}, {2.0006, 0, 2.0006, 200}};
  ASSERT_EQ(LaunchAxis(stream).pauses().size(), 1u);
  EXPECT_DOUBLE_EQ(LaunchAxis(stream).pauses()[0].from, 2);
}

TEST(KeptEnergy, ShortestMeasurements) {
  const auto shortest = [](SensorKind kind, double period) { return shortest_measurement(test_sensor(kind, period, 0.8, 0.03)); };
  EXPECT_DOUBLE_EQ(shortest(SensorKind::cumulative_energy, 0.1), 0.43);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::cumulative_energy, 0.001), 0.05);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::windowed_power, 0.1), 1.23);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::windowed_power, 0.001), 0.85);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::exponential_power, 0.015), 0.43);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::exponential_power, 0.05), 1.03);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::instantaneous_power, 0.1), 0.43);
  EXPECT_DOUBLE_EQ(shortest(SensorKind::instantaneous_power, 0.001), 0.05);
}

TEST(Settling, NeedsSteadyLaunchesPowerAndTemperature) {
  // 1000 launches and 100 W a second, each as steady as can be.
  const auto steady = [] {
    EnergyTrace trace;
    for (int i = 0; i <= 100; ++i) trace.stream.marks.push_back({0.01 * i, 0, 0.01 * i, static_cast<std::uint64_t>(10 * i)});
    SensorTrace sensor{test_sensor(SensorKind::windowed_power, 0.02, 0.02), {}, {}};
    for (int i = 0; i <= 50; ++i) sensor.readings.push_back({0.02 * i, 100 + 1e-3 * i});
    trace.sensors.push_back(sensor);
    return trace;
  };
  const EnergyOptions options;
  const EnergyTrace trace = steady();
  EXPECT_NEAR(settled_from(trace, options, 1).value_or(0), 0.94, 1e-9);
  EXPECT_FALSE(settled_from(trace, options, 0.149)) << "too early";
  EXPECT_TRUE(settled_from(trace, options, 0.151));
  EnergyTrace few = trace;
  few.stream.marks.resize(5);
  EXPECT_FALSE(settled_from(few, options, 1));
  EnergyTrace faster = trace;
  for (int i = 95; i <= 100; ++i) faster.stream.marks[static_cast<std::size_t>(i)].launches += static_cast<std::uint64_t>(i - 94);
  EXPECT_FALSE(settled_from(faster, options, 1)) << "a tenth more launches at the end";
  EnergyTrace rising = trace;
  for (Reading& reading : rising.sensors[0].readings) reading.value *= 1 + 0.5 * reading.time;
  EXPECT_FALSE(settled_from(rising, options, 1));
  rising.sensors[0].info.kind = SensorKind::exponential_power;
  EXPECT_TRUE(settled_from(rising, options, 1)) << "it lags too much to tell";
  rising.sensors[0].info.kind = SensorKind::windowed_power;
  rising.sensors[0].info.window = 0.3;
  EXPECT_TRUE(settled_from(rising, options, 1));
  rising.sensors[0].info.window = 0.02;
  rising.sensors.push_back(trace.sensors[0]);
  rising.sensors[1].info.update_period = 0.01;
  rising.sensors[1].info.window = 0.01;
  EXPECT_TRUE(settled_from(rising, options, 1)) << "the finest decides";
  rising.sensors[1].readings.clear();
  EXPECT_FALSE(settled_from(rising, options, 1)) << "of those that say something";
  EnergyTrace warming = trace;
  const auto warms_by = [&](double degrees, double since) {
    warming.board.clear();
    for (int i = 0; i <= 10; ++i) {
      BoardState state;
      state.temperature_c = 50 + degrees * 0.1 * i;
      warming.board.emplace_back(since + 0.05 * i, state);
    }
    return settled_from(warming, options, 1);
  };
  EXPECT_TRUE(warms_by(5, 0.3));
  EXPECT_FALSE(warms_by(5.5, 0.3));
  EXPECT_TRUE(warms_by(20, -5)) << "long ago";
  EnergyTrace none = trace;
  none.sensors.clear();
  EXPECT_FALSE(settled_from(none, options, 1));
  EnergyTrace counter = trace;
  counter.sensors[0].info.kind = SensorKind::cumulative_energy;
  for (Reading& reading : counter.sensors[0].readings) reading.value = 100 * reading.time;
  EXPECT_TRUE(settled_from(counter, options, 1));
  for (Reading& reading : counter.sensors[0].readings) reading.value = 100 * reading.time * reading.time;
  EXPECT_FALSE(settled_from(counter, options, 1));
}

TEST(Precision, IsAskedMoreOfFewReadings) {
  EnergyResult result;
  EnergyOptions options;
  options.precision = 0.01;
  const auto enough = [&](std::int64_t n, double half_width) {
    result.quantities["energy"].value = 100;
    result.quantities["energy"].n = n;
    result.scatter_half_width = half_width;
    return precise_enough(result, options);
  };
  EXPECT_FALSE(precise_enough(result, options)) << "of nothing";
  EXPECT_FALSE(enough(5, 0.1));
  EXPECT_TRUE(enough(6, 0.8));
  EXPECT_FALSE(enough(11, 0.81));
  EXPECT_TRUE(enough(12, 1));
  EXPECT_FALSE(enough(12, 1.01));
  result.status = Status::not_converged;
  EXPECT_FALSE(enough(12, 0.1));
}

TEST(KeptEnergy, AtAPowerLimit) {
  SensorInfo counter = test_sensor(SensorKind::cumulative_energy, 0.1, 0, 0.02);
  std::vector<double> found;
  for (const double limit : {295.0, 305.0, 325.0}) {
    const EnergyTrace trace = energy_trace({counter});
    const auto e = estimate_capped(trace.sensors[0], {0.4, 3}, LaunchAxis(trace.stream), limit);
    ASSERT_TRUE(e) << limit;
    found.insert(found.end(), {e->energy, e->seconds, e->relative_error, e->degrees, e->elasticity, static_cast<double>(e->n)});
  }
  expect_kept(found, {0.3129228478, 0.001060755416, 0.03549598288, 19, 0.5, 21, 0.3026630823, 0.0009923379746, 0.07247720953, 19,
      0.5, 21, 0.2840376618, 0.0008739620364, 0.2330862168, 19, 0.5, 21});
  const EnergyTrace trace = energy_trace({counter});
  EXPECT_FALSE(estimate_capped(trace.sensors[0], {0.4, 3}, LaunchAxis(trace.stream), 400)) << "far from the limit";
  EXPECT_FALSE(estimate_capped(trace.sensors[0], {0.4, 0.8}, LaunchAxis(trace.stream), 305)) << "too few readings";
}

TEST(KeptEnergy, BetweenTwoMoments) {
  std::vector<double> found;
  for (const auto& info : {test_sensor(SensorKind::cumulative_energy, 0.1, 0, 0.02), test_sensor(SensorKind::windowed_power, 0.1,
      0.3, 0.05),
                           test_sensor(SensorKind::instantaneous_power, 0.05)}) {
    const SensorTrace trace = trace_of_test_power(info, 0, 4, 0.01);
    for (const SpanEnergy& energy : energy_over(trace, {{0.5, 1.5}, {0.05, 3.9}, {1.01, 1.02}, {-0.1, 2}, {-1, 2}, {2, 4.02}, {2, 6}}))
      found.insert(found.end(), {energy.joules, energy.edge_error, energy.why_not.empty() ? 1.0 : 0.0});
    found.insert(found.end(), {reading_margin(info), shortest_span(info)});
  }
  expect_kept(found, {313.8853421, 12.81431543, 1, 1175.834448, 12.46837411, 1, 3.265718495, 13.33223993, 1, 644.1828604,
      12.52316912, 1, 0, 0, 0, 615.6107058, 12.44168407, 1, 0, 0, 0, 0.241, 1, 314.4477468, 38.51182652, 1, 1176.104957,
      37.41372766, 1, 3.181962692, 38.97092488, 1, 641.7908558, 37.43000282, 1, 0, 0, 0, 617.6141731, 37.44652431, 1, 0, 0, 0,
      0.421, 1, 314.1109122, 6.411762146, 1, 1175.371439, 6.231732219, 1, 3.135979879, 6.401292123, 1, 643.727569, 6.257159037, 1,
      0, 0, 0, 614.437495, 6.208986558, 1, 0, 0, 0, 0.111, 0.5});
}

TEST(Plausible, IsWhatABoardCanDraw) {
  SensorInfo info = test_sensor(SensorKind::instantaneous_power, 0.1);
  EXPECT_EQ(why_implausible(info, -1e9), "") << "nobody knows";
  info.least_power = 2;
  info.most_power = 900;
  for (const double good : {2.0, 900.0}) EXPECT_EQ(why_implausible(info, good), "") << good;
  EXPECT_THAT(why_implausible(info, 901), HasSubstr("far above any limit"));
  EXPECT_THAT(why_implausible(info, 1.9), HasSubstr("no powered board"));
  EXPECT_EQ(why_implausible(info, NAN), "it reads no number");
  SensorTrace trace{info, {}, {}};
  for (int i = 0; i < 20; ++i) trace.readings.push_back({0.1 * i, i < 2 ? 1.0 : 100.0});
  EXPECT_FALSE(plausible(trace));
  SensorTrace cleaned = trace;
  EXPECT_EQ(drop_implausible(cleaned), "") << "one in ten";
  EXPECT_EQ(cleaned.readings.size(), 18u);
  trace.readings[2].time = INFINITY;
  EXPECT_EQ(drop_implausible(trace), "it reads no number");
  info.level = 100;
  info.level_error = 3;
  info.gain_error = 0.04;
  EXPECT_DOUBLE_EQ(calibration_error(info, 200), 5.0 / 200);
  EXPECT_EQ(calibration_error(info, 0), 0);
  EXPECT_EQ(calibration_error(info, -5), 0);
}

SlopeEstimate said(double value, double error, const char* sensor = "a") {
  SlopeEstimate e;
  e.valid = true;
  e.value = value;
  e.standard_error = error;
  e.degrees = 100;
  e.n = 10;
  e.sensor = sensor;
  e.covered = {1, 2};
  return e;
}

TEST(CombinedSensors, ThatDisagreeSaySo) {
  const auto apart = [](double by) { return combine({said(100, 0.5), said(100 + by, 0.5)}); };
  EXPECT_NEAR(apart(2.1).standard_error, 0.5, 1e-9) << "within three standard errors of a difference";
  EXPECT_NEAR(apart(2.2).standard_error, std::hypot(0.5, 0.55), 1e-9);
  EXPECT_THAT(apart(2.2).warnings, Contains("sensors disagree by 2.2 %"));
  EXPECT_TRUE(combine({said(100, 0.1), said(101, 0.1)}).warnings.empty()) << "one in a hundred";
  EXPECT_TRUE(combine({said(100, 0.5), said(130, 0.5)}).valid);
  const auto torn = combine({said(100, 0.5), said(131, 0.5, "b")});
  EXPECT_FALSE(torn.valid);
  EXPECT_EQ(torn.why_not, "a says 100 and b says 131: neither can be believed");
  EXPECT_TRUE(combine({said(100, 0.5), said(131, 8)}).valid) << "the other hardly knows";
  auto rail = said(131, 0.5);
  rail.scope = SensorScope::rail;
  EXPECT_TRUE(combine({said(100, 0.5), rail}).valid) << "of a part";
  EXPECT_EQ(combine({said(100, 0.5), said(101, 1.5)}).n, 20) << "thrice as wide still counts";
  EXPECT_EQ(combine({said(100, 0.5), said(101, 1.6)}).n, 10);
  SlopeEstimate none, other;
  none.why_not = "x";
  other.why_not = "y";
  EXPECT_EQ(combine({none, other}).why_not, "x; y");
}

}  // namespace
}  // namespace ergotune
