// Energy between two moments, from traces whose power is known.
#include "measure/energy/span_energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "scripted_sensor.hpp"

namespace ergotune {
namespace {

using test::ScriptedSensor;
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
  // A processor's counter, a GPU's, a sensor of power and one that averages, each with its lag.
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 5e-4), {0.51, 1.27})),
            2e-3);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 2e-2), {0.51, 1.27})),
            4e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::cumulative_energy, 0.1, 0, 0.05, 0, 4, 5e-3), {0.51, 3.02})),
            2e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::instantaneous_power, 0.02, 0, 0, 0, 4, 2e-3), {0.51, 1.97})),
            2e-2);
  EXPECT_LT(std::abs(relative_error(trace_of(SensorKind::windowed_power, 0.02, 0.02, 0.03, 0, 4, 2e-3), {0.51, 1.97})),
            2e-2);
}

TEST(SpanEnergy, SaysHowMuchTheEdgesLeaveOpen) {
  const SpanEnergy slow = energy_over(trace_of(SensorKind::cumulative_energy, 0.1, 0, 0, 0, 4, 5e-3), {{1, 2}}).front();
  const SpanEnergy fast =
      energy_over(trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 5e-4), {{1, 2}}).front();
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
  const SpanEnergy refused = energy_over(absurd, {{1, 2}}).front();
  EXPECT_THAT(refused.why_not, HasSubstr("far above any limit"));
  EXPECT_EQ(refused.joules, 0);
  EXPECT_EQ(refused.edge_error, 0);
  SensorTrace counter = trace_of(SensorKind::cumulative_energy, 1e-3, 0, 0, 0, 4, 5e-4);
  counter.info.most_power = 50;
  EXPECT_THAT(energy_over(counter, {{1, 2}}).front().why_not, HasSubstr("far above any limit"));
}

// A counter that is read often before and after a run and once a second while it lasts: what lies between a tick and
// the run's beginning or end is idle energy, and no part of the run's.
TEST(SpanEnergy, OfARunBetweenPausesHasNoBiasFromTheTicksAroundIt) {
  const double idle = 70, busy = 600;
  for (int shift = 0; shift < 10; ++shift) {
    const TimeSpan run{2.0 + 0.0101 * shift, 5.003 + 0.0177 * shift};
    const auto energy = [&](double t) {
      return idle * t + (busy - idle) * (std::clamp(t, run.from, run.to) - run.from);
    };
    SensorTrace trace;
    trace.info.kind = SensorKind::cumulative_energy;
    trace.info.update_period = 0.1;
    double next = 0;
    for (double t = 1.5; t < 5.6; t += 0.006) {
      const bool runs = t > run.from && t < run.to;
      if (runs && t < next) continue;
      next = runs ? t + 1 : 0;
      trace.readings.push_back({t, energy(std::floor(t / 0.1) * 0.1)});
    }
    const SpanEnergy found = energy_over(trace, {run}).front();
    EXPECT_EQ(found.why_not, "");
    EXPECT_NEAR(found.joules / (busy * run.length()), 1, 2e-3) << shift;
  }
}

SensorInfo slow_sensor(const std::string& id) {
  SensorInfo info;
  info.id = id;
  info.lag = 1;
  info.window = 2;
  info.update_period = 10;
  return info;
}

/// A recorder of these sensors; what they are stays theirs.
template <class... Sensors>
std::unique_ptr<SensorRecorder> recorder_of(Sensors*... sensors) {
  std::vector<std::unique_ptr<Sensor>> list;
  (list.emplace_back(sensors), ...);
  return std::make_unique<SensorRecorder>(std::move(list));
}

constexpr double kEver = 1e6;  ///< s of patience, where none is wanted

TEST(SensorRecorder, KeepsWhatEachSensorSaysUntilItIsReportedToForget) {
  auto* a = new ScriptedSensor(slow_sensor("a"), {{{101, 5}}, {{102, 6}, {103, 7}}});
  auto* b = new ScriptedSensor(slow_sensor("b"), {{}, {{101, 8}}, {{102, 9}}});
  const auto recorder = recorder_of(a, b);
  recorder->begin(1e-4);
  EXPECT_EQ(a->restarts + b->restarts, 2);
  recorder->wait(0, kEver);
  recorder->end();
  const auto found = recorder->traces();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].info.id, "a");
  ASSERT_EQ(found[0].readings.size(), 3u);
  EXPECT_EQ(found[0].readings.back().value, 7);
  ASSERT_EQ(found[1].readings.size(), 2u) << "it waited for the second, too";
  EXPECT_EQ(found[1].readings.back().value, 9);
  EXPECT_EQ(found[0].failure + found[1].failure, "");
  recorder->begin(1e-4);
  recorder->end();
  EXPECT_TRUE(recorder->traces()[0].readings.empty());
  EXPECT_EQ(a->restarts, 2);
}

TEST(SensorRecorder, WaitsNotForOneThatHasFailedAndKeepsItsWords) {
  for (const auto& [status, words] :
       {std::pair{ReadStatus::failed, "it is gone"}, {ReadStatus::not_supported, "it is gone"}}) {
    const auto recorder = recorder_of(new ScriptedSensor(slow_sensor("a"), {}, status));
    recorder->begin(1e-4);
    recorder->wait(0, kEver);
    EXPECT_EQ(recorder->traces()[0].failure, words);
  }
  const auto silent = recorder_of(new ScriptedSensor(SensorInfo{}, {}, ReadStatus::no_new_data));
  silent->begin(1e-4);
  silent->wait(0, 1e-3);
  EXPECT_EQ(silent->traces()[0].failure, "") << "nothing new is no failure";
}

}  // namespace
}  // namespace ergotune
