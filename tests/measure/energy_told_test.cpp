// What is told of a measurement of energy beside the number itself: at a power limit, of a board that warms, and when it has settled.
#include <gmock/gmock.h>

#include "ergotune/base/statistics.hpp"
#include "kept_numbers.hpp"
#include "measure/energy_capped.hpp"

namespace ergotune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const double kZ = normal_quantile(0.975);

/// 3 s of 1000 launches a second at about 100 W by a sensor that looks every 20 ms; marks every 10 ms.
EnergyTrace steady(double relative_noise = 0.01) {
  EnergyTrace trace;
  for (int i = 0; i <= 300; ++i) trace.stream.marks.push_back({0.01 * i, 0, 0.01 * i, static_cast<std::uint64_t>(10 * i)});
  SensorTrace sensor{test_sensor(SensorKind::windowed_power, 0.02, 0.02), {}, {}};
  sensor.info.id = "first";
  for (int i = 1; i <= 150; ++i) sensor.readings.push_back({0.02 * i, 100 * (1 + relative_noise * noise(static_cast<std::uint32_t>(i)))});
  trace.sensors.push_back(sensor);
  return trace;
}

void look(EnergyTrace& trace, double when, const std::function<void(BoardState&)>& change) {
  BoardState state;
  change(state);
  trace.board.emplace_back(when, state);
}

EnergyTrace at_limit(double limit, double swing = 0.02) {
  EnergyTrace trace = steady();
  double launches = 0;
  for (std::size_t i = 0; i < 150; ++i) {
    const double rate = 1000 * (1 + swing * std::sin(0.3 * static_cast<double>(i)));
    for (const std::size_t mark : {2 * i + 1, 2 * i + 2}) trace.stream.marks[mark].launches = static_cast<std::uint64_t>(launches += rate);
    trace.sensors[0].readings[i].value = limit * std::pow(rate / 1000, 2.0) * (1 + 0.002 * noise(static_cast<std::uint32_t>(i)));
  }
  look(trace, 1, [&](BoardState& state) { state.power_limit_w = limit, state.clock_reasons = {"power_cap"}; });
  return trace;
}

TEST(EnergyAtALimit, IsTheLimitOverTheRateThatHoldsItWithTheFitsInterval) {
  const EnergyTrace trace = at_limit(100);
  const auto fit = estimate_capped(trace.sensors[0], {0, 3}, LaunchAxis(trace.stream), 100);
  ASSERT_TRUE(fit);
  const EnergyResult result = estimate_energy(trace, {});
  const Quantity &energy = result.quantities.at("energy"), &power = result.quantities.at("power"), &time = result.quantities.at("time");
  EXPECT_DOUBLE_EQ(energy.value, fit->energy);
  EXPECT_DOUBLE_EQ(power.value, 100);
  EXPECT_DOUBLE_EQ(time.value, fit->seconds);
  EXPECT_DOUBLE_EQ(time.standard_error, fit->seconds * fit->relative_error);
  EXPECT_EQ(time.method, energy.method);
  const double widened = student_t_quantile(0.975, fit->degrees) / kZ * fit->relative_error;
  EXPECT_NEAR(energy.standard_error, widened * fit->energy, 1e-9 * fit->energy);
  EXPECT_NEAR(power.standard_error, widened * 100, 1e-7);
  EXPECT_EQ(energy.n, fit->n);
  EXPECT_EQ(power.n, fit->n);
  EXPECT_EQ(result.drift, 0);
  EnergyOptions reference;
  reference.whole_budget = true;
  EXPECT_THAT(estimate_energy(trace, reference).quantities.at("energy").method, testing::Not(HasSubstr("limit"))) << "a plain mean";
}

TEST(EnergyAtALimit, TheBoardHoldsItByItsOwnSensorWhichAMeterMayHaveCorrected) {
  EnergyTrace trace = at_limit(100);
  trace.sensors[0].info.gain = 1.02;
  trace.sensors[0].info.offset = 3;
  EXPECT_DOUBLE_EQ(estimate_energy(trace, {}).quantities.at("power").value, 105);
}

TEST(EnergyAtALimit, IsTakenFromTheSensorThatKnowsItBestOrFromTheFirstAlone) {
  EnergyTrace trace = at_limit(100);
  SensorTrace good = trace.sensors[0];
  for (std::size_t i = 0; i < good.readings.size(); ++i) trace.sensors[0].readings[i].value *= 1 + 0.05 * noise(static_cast<std::uint32_t>(i));
  good.info.id = "good";
  EnergyOptions alone;
  alone.combine_sensors = false;
  for (const bool good_first : {false, true}) {
    trace.sensors = good_first ? std::vector{good, trace.sensors.back()} : std::vector{trace.sensors[0], good};
    EXPECT_EQ(estimate_energy(trace, {}).quantities.at("energy").sensor, "good");
    EXPECT_EQ(estimate_energy(trace, alone).quantities.at("energy").sensor, good_first ? "good" : "first");
    if (!good_first) trace.sensors = {good, trace.sensors[0]};
  }
  // the first says nothing of a limit: the next one does
  EnergyTrace far = at_limit(100);
  good = far.sensors[0];
  good.info.id = "good";
  for (Reading& reading : far.sensors[0].readings) reading.value *= 1.2;
  far.sensors.push_back(good);
  EXPECT_EQ(estimate_energy(far, alone).quantities.at("energy").sensor, "good");
}

TEST(EnergyTold, OfIdlePowerAndTemperatureIsWhatTheyTakeInALaunch) {
  EnergyTrace trace = steady();
  look(trace, 0.5, [](BoardState& state) { state.temperature_c = 60; });
  look(trace, 2.5, [](BoardState& state) { state.temperature_c = 62; });
  EnergyOptions options;
  const EnergyResult plain = estimate_energy(trace, options);
  EXPECT_EQ(plain.quantities.count("idle_subtracted_energy") + plain.quantities.count("corrected_energy"), 0u);
  EXPECT_THAT(plain.warnings, IsEmpty());
  options.idle_power = 40;
  options.idle_power_error = 4;
  options.correction = EnergyOptions::TemperatureCorrection{51, 0.5, 0.2};
  const EnergyResult result = estimate_energy(trace, options);
  const Quantity &energy = result.quantities.at("energy"), &idle = result.quantities.at("idle_subtracted_energy"),
                 &corrected = result.quantities.at("corrected_energy");
  EXPECT_NEAR(idle.value, energy.value - 40 * 1e-3, 1e-9);
  EXPECT_NEAR(idle.standard_error, std::hypot(energy.standard_error, 4 * 1e-3), 1e-9);
  EXPECT_THAT(idle.method, HasSubstr("less 40 W of idle power"));
  EXPECT_NEAR(corrected.value, energy.value - 0.5 * 10 * 1e-3, 1e-9);
  EXPECT_NEAR(corrected.standard_error, std::hypot(energy.standard_error, 0.2 * 10 * 1e-3), 1e-9);
  EXPECT_THAT(corrected.method, HasSubstr("at 51 °C by 0.5 W per °C"));
}

TEST(EnergyTold, ABoardOfKnownStatesThatWarmsIsKnownLessWell) {
  EnergyTrace trace = steady(0.001);
  const auto half_width = [&](double degrees, double repeatability) {
    trace.board.clear();
    look(trace, 0.0, [](BoardState& state) { state.temperature_c = 50; });
    look(trace, 3.0, [&](BoardState& state) { state.temperature_c = 50 + degrees; });
    look(trace, -0.01, [](BoardState& state) { state.temperature_c = 10; });
    look(trace, 3.01, [](BoardState& state) { state.temperature_c = 99; });
    look(trace, 1.0, [](BoardState&) {});
    trace.sensors[0].info.repeatability = repeatability;
    const EnergyResult result = estimate_energy(trace, {});
    return std::sqrt(std::pow(result.half_width, 2) - std::pow(result.scatter_half_width, 2)) / result.quantities.at("energy").value;
  };
  EXPECT_NEAR(half_width(4, 0), 0, 1e-9) << "nothing is claimed of a board whose states nobody knows";
  EXPECT_NEAR(half_width(0, 0.01), kZ * 0.01, 1e-6);
  EXPECT_NEAR(half_width(4, 0.01), kZ * std::hypot(0.01, 4 * 0.0045), 1e-6) << "0.45 % per degree";
}

TEST(EnergyTold, WhatTheBoardDidWhileItWasMeasured) {
  EnergyTrace trace = steady();
  trace.settled_at = 1;
  const auto state = [](double clock) {
    return [=](BoardState& s) {
      s.core_clock_mhz = clock, s.memory_clock_mhz = clock / 2;
      s.core_voltage_v = clock / 1000, s.temperature_c = clock / 20;
    };
  };
  look(trace, 0.9, state(400));
  look(trace, 1, state(1000));
  look(trace, 3, state(1100));
  look(trace, 3.1, state(400));
  const EnergyResult result = estimate_energy(trace, {});
  EXPECT_DOUBLE_EQ(result.quantities.at("core_clock").value, 1050e6);
  EXPECT_EQ(result.quantities.at("core_clock").n, 2);
  EXPECT_DOUBLE_EQ(result.quantities.at("memory_clock").value, 525e6);
  EXPECT_DOUBLE_EQ(result.quantities.at("core_voltage").value, 1.05);
  EXPECT_DOUBLE_EQ(result.quantities.at("temperature").value, 52.5);
  EXPECT_THAT(result.warnings, IsEmpty()) << "five degrees are nothing";
  trace.board.back().first = 2;
  trace.board.back().second.temperature_c = 49.9;
  EXPECT_THAT(estimate_energy(trace, {}).warnings, Contains("temperature changed by 5 degrees while it was measured"));
}

TEST(EnergyTold, ADriftIsSaidAndHalfOfItBelongsToTheInterval) {
  const auto drifting = [](double by) {
    EnergyTrace trace = steady(0);
    for (std::size_t i = 0; i < trace.sensors[0].readings.size(); ++i)
      trace.sensors[0].readings[i].value *= 1 + by * (trace.sensors[0].readings[i].time - 1.5) / 3;
    return estimate_energy(trace, {});
  };
  EXPECT_THAT(drifting(0.019).warnings, IsEmpty());
  EXPECT_THAT(drifting(0.05).warnings, Contains("energy per launch drifted by 5.0 % while it was measured"));
  EXPECT_THAT(drifting(-0.05).warnings, Contains("energy per launch drifted by -5.0 % while it was measured"));
  const EnergyResult found = drifting(0.05);
  EXPECT_GE(found.scatter_half_width, 0.5 * found.drift * found.quantities.at("energy").value);
}

TEST(EnergyTold, WithoutASensorThatSaysAnythingThereIsTheTimeAlone) {
  EnergyTrace trace = steady();
  trace.sensors[0].readings.clear();
  const EnergyResult result = estimate_energy(trace, {});
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_EQ(result.message, "no energy: first: no reading came");
  EXPECT_EQ(result.quantities.size(), 1u);
  EXPECT_NEAR(result.quantities.at("time").value, 1e-3, 1e-12);
  EXPECT_EQ(result.quantities.at("time").n, 3000);
}

TEST(EnergyTold, SaysByHowMuchItMissesWhatWasAsked) {
  EnergyOptions options;
  options.precision = 1e-5;
  const EnergyResult result = estimate_energy(steady(), options);
  EXPECT_EQ(result.status, Status::not_converged);
  const double known = 100 * result.scatter_half_width / result.quantities.at("energy").value;
  EXPECT_EQ(result.message, fmt::format("energy is known to {:.2f} %, 0.00 % was asked", known));
}

TEST(LaunchTimes, AreOfMarksThatLieInTheSpanItsEndsToo) {
  LaunchStream stream;
  stream.marks = {{0, 0, 0, 0}, {1, 0, 1, 10}, {2, 0, 2, 30}, {3, 0, 3, 60}, {4, 0, 4, 100}};
  const LaunchAxis axis(stream);
  EXPECT_EQ(axis.time_per_launch({1, 3}).launches, 50);
  EXPECT_DOUBLE_EQ(axis.time_per_launch({1, 3}).seconds, 2.0 / 50);
  EXPECT_EQ(axis.time_per_launch({1.1, 2.9}).launches, 0);
  EXPECT_EQ(axis.time_per_launch({1, 2}).standard_error, 0) << "of one nobody knows it";
  EXPECT_DOUBLE_EQ(axis.launches_at(0), 0);
  EXPECT_DOUBLE_EQ(axis.launches_at(2.5), 45);
  EXPECT_DOUBLE_EQ(axis.launches_at(4), 100);
  LaunchStream single;
  single.marks = {{0, 0, 0, 0}, {1, 0, 1, 1}};
  EXPECT_EQ(LaunchAxis(single).time_per_launch({0, 1}).launches, 1);
}

/// A stream with marks `gap` s apart and a sensor of 100 W, to be settled or not.
EnergyTrace marked(double gap, int marks, double update = 0.02) {
  EnergyTrace trace;
  for (int i = 0; i < marks; ++i) trace.stream.marks.push_back({gap * i, 0, gap * i, static_cast<std::uint64_t>(100 * i)});
  SensorTrace sensor{test_sensor(SensorKind::instantaneous_power, update), {}, {}};
  for (double t = 0; t <= gap * (marks - 1) + 1e-9; t += update) sensor.readings.push_back({t, 100});
  trace.sensors.push_back(sensor);
  return trace;
}

TEST(Settled, IsLookedAtOverThreeMarksOrSixtyMilliseconds) {
  EnergyOptions options;
  options.settle_at_least = 0;
  EXPECT_NEAR(settled_from(marked(0.125, 9), options, 1).value_or(0), 1 - 3 * 0.125, 1e-9);
  EXPECT_NEAR(settled_from(marked(0.01, 101), options, 1).value_or(0), 1 - 0.06, 1e-9);
  EXPECT_NEAR(settled_from(marked(0.01, 101), options, 5).value_or(0), 1 - 0.06, 1e-9) << "the stream has ended";
  EXPECT_TRUE(settled_from(marked(0.125, 7), options, 1)) << "twice three";
  EXPECT_FALSE(settled_from(marked(0.125, 6), options, 1));
  EXPECT_TRUE(settled_from(marked(0.02, 7), options, 1));
}

TEST(Settled, ByTheRateOfLaunchesAndThePowerWithinTheirTolerances) {
  EnergyOptions options;
  options.settle_at_least = 0;
  options.rate_tolerance = 0.1;
  options.power_tolerance = 0.05;
  const auto rate = [&](double by) {
    EnergyTrace trace = marked(0.125, 9);
    for (std::size_t i = 6; i < 9; ++i) trace.stream.marks[i].launches += static_cast<std::uint64_t>(100 * by * static_cast<double>(i - 5));
    return settled_from(trace, options, 1).has_value();
  };
  EXPECT_TRUE(rate(0.09));
  EXPECT_FALSE(rate(0.12));
  const auto power = [&](double by, double update, double seconds) {
    EnergyTrace trace = marked(0.01, 101, update);
    for (Reading& reading : trace.sensors[0].readings)
      if (reading.time > 1 - seconds + 1e-9) reading.value *= 1 + by;
    return settled_from(trace, options, 1).has_value();
  };
  EXPECT_TRUE(power(0.04, 0.01, 0.06));
  EXPECT_FALSE(power(0.06, 0.01, 0.06));
  EXPECT_FALSE(power(-0.06, 0.01, 0.06));
  EXPECT_FALSE(power(0.06, 0.05, 0.125)) << "of a slow sensor over two and a half of its updates";
  EXPECT_TRUE(power(0.06, 0.05, 0.3)) << "that is before what is looked at";
}

}  // namespace
}  // namespace ergotune
