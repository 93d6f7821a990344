// Energy between two moments, from traces whose power is known.
#include "measure/span_energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fakes/sysfs_trees/sysfs_trees.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

const test::PowerCurve kPower{100, 40, 0.37};

/// What a sensor with these semantics reads of kPower, polled every `poll` s.
SensorTrace trace_of(SensorKind kind, double update, double window, double lag, double from, double to, double poll) {
  SensorTrace trace;
  trace.info.id = "test";
  trace.info.kind = kind;
  trace.info.update_period = update;
  trace.info.window = window;
  trace.info.lag = lag;
  for (double t = from; t < to; t += poll) {
    const double at = std::floor(t / update) * update - lag;
    double value = kPower.power(at);
    if (kind == SensorKind::cumulative_energy) value = kPower.energy(0, at);
    if (kind == SensorKind::windowed_power) value = kPower.energy(at - window, at) / window;
    trace.readings.push_back({t, value});
  }
  return trace;
}

double relative_error(const SensorTrace& trace, TimeSpan span) {
  const SpanEnergy energy = energy_over(trace, {span}).front();
  EXPECT_EQ(energy.why_not, "");
  return energy.joules / kPower.energy(span.from, span.to) - 1;
}

TEST(SpanEnergy, IsTheIntegralOfPower) {
  // A processor's counter, a board's, a sensor of power and one that averages, each with its lag.
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 5e-4), {0.51, 1.27})), 2e-3);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 2e-2), {0.51, 1.27})), 4e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 0.1, 0, 0.05, 0, 4, 5e-3), {0.51, 3.02})), 2e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::instantaneous_power, 0.02, 0, 0, 0, 4, 2e-3), {0.51, 1.97})), 2e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::windowed_power, 0.02, 0.02, 0.03, 0, 4, 2e-3), {0.51, 1.97})), 2e-2);
}

TEST(SpanEnergy, SaysHowMuchTheEdgesLeaveOpen) {
  const SpanEnergy slow = energy_over(trace_of(SensorKind::cumulative_energy, 0.1, 0, 0, 0, 4, 5e-3), {{1, 2}}).front();
  const SpanEnergy fast = energy_over(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 5e-4), {{1, 2}}).front();
  EXPECT_NEAR(slow.edge_error, 0.1 * slow.joules / std::sqrt(6.0), 1e-9);
  EXPECT_NEAR(fast.edge_error, slow.edge_error / 100, 0.02 * slow.edge_error);
}

TEST(SpanEnergy, GuessesNothing) {
  const SensorTrace trace = trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 1, 2, 5e-4);
  EXPECT_THAT(energy_over(trace, {{0, 1.5}}).front().why_not, HasSubstr("leave out"));
  EXPECT_THAT(energy_over(trace, {{1.5, 3}}).front().why_not, HasSubstr("leave out"));
  SensorTrace still = trace;
  for (Reading& reading : still.readings) reading.value = 7;
  EXPECT_THAT(energy_over(still, {{1.2, 1.8}}).front().why_not, HasSubstr("did not move"));
  SensorTrace none = trace;
  none.readings.clear();
  none.failure = "the sensor is gone";
  EXPECT_EQ(energy_over(none, {{1.2, 1.8}}).front().why_not, "the sensor is gone");
  SensorTrace absurd = trace_of(SensorKind::instantaneous_power, 0.02, 0, 0, 0, 4, 2e-3);
  absurd.info.most_power = 50;
  EXPECT_THAT(energy_over(absurd, {{1, 2}}).front().why_not, HasSubstr("far above any limit"));
}

}  // namespace
}  // namespace ergotune
