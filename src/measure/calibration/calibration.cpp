#include "measure/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "measure/energy/energy_series.hpp"
#include "power/sensors/stored_calibration.hpp"

namespace ergotune {
namespace {

/// A square wave that lasts about `seconds`.
std::vector<double> square_wave(double period, double seconds) {
  std::vector<double> on_off;
  for (double t = 0; t < seconds; t += period) {
    on_off.push_back(period / 2);
    on_off.push_back(period / 2);
  }
  return on_off;
}

/// Random durations between two bounds, on and off: an input that reveals all delays at once.
std::vector<double> random_wave(double shortest, double longest, double seconds, Random& random) {
  std::vector<double> on_off;
  for (double t = 0; t < seconds;) {
    const double span = shortest * std::pow(longest / shortest, random.uniform());
    on_off.push_back(span);
    t += span;
  }
  if (on_off.size() % 2) on_off.pop_back();
  return on_off;
}

/// Polls observe updates late by varying amounts; if updates are periodic, a line through them is more accurate than
/// each of them.
void fit_update_times(std::vector<Reading>& updates, double period) {
  if (updates.size() < 8) return;
  std::vector<double> number, time;
  double count = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    if (i > 0) count += std::max(1.0, std::round((updates[i].time - updates[i - 1].time) / period));
    number.push_back(count);
    time.push_back(updates[i].time);
  }
  const LineFit fit = fit_line(number, time);
  if (fit.residual_deviation > 0.1 * period) return;  // not periodic
  for (std::size_t i = 0; i < updates.size(); ++i) updates[i].time = fit.intercept + fit.slope * number[i];
}

/// Converts readings to power per update; a counter's increments become the mean power between ticks.
std::vector<Reading> as_power(const SensorInfo& info, const std::vector<Reading>& readings, double period) {
  if (info.kind != SensorKind::cumulative_energy) {
    auto updates = power_updates(readings, period);
    fit_update_times(updates, period);
    return updates;
  }
  std::string failure;
  auto ticks = counter_ticks(readings, period, failure);
  // A counter that ticks faster than it is polled: increments over several polls, since time uncertainty would dominate
  // the power.
  std::vector<Reading> power;
  std::size_t last = 0;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double dt = ticks[i].time - ticks[last].time;
    if (dt < 0.02) continue;
    power.push_back({ticks[i].time, (ticks[i].value - ticks[last].value) / dt});
    last = i;
  }
  return power;
}

Calibrated from_values(const std::vector<double>& values) {
  return {median(values), quantile(values, 0.025), quantile(values, 0.975)};
}

/// Mean with its 95 % interval.
Calibrated mean_of(const std::vector<Reading>& readings, double from) {
  std::vector<double> values;
  for (const auto& r : readings)
    if (r.time >= from) values.push_back(r.value);
  if (values.size() < 2) return {};
  const SeriesMean m = batch_mean(values);
  const double half = half_width_95(m.standard_error, std::max(1.0, m.degrees));
  return {m.mean, m.mean - half, m.mean + half};
}

/// Returns the largest step in J of which all increments are multiples; counters count in micro- or millijoules.
double counter_step(const std::vector<Reading>& readings) {
  long long step = 0;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const auto difference = std::llround((readings[i].value - readings[i - 1].value) * 1e6);
    if (difference > 0) step = std::gcd(step, difference);
  }
  return static_cast<double>(step) * 1e-6;
}

void find_counter_loss(CalibrationRig& rig, Calibration& out) {
  // Bursts of two lengths that start from idle: the loss at the start cancels in their difference.
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    double joules[2], seconds[2];
    const double lengths[2] = {0.5, 2.0};
    for (int b = 0; b < 2; ++b) {
      const CalibrationTrace trace = rig.drive({0.0, 1.2, lengths[b], 0.8}, nullptr);
      if (trace.readings.empty() || trace.busy.empty()) return;
      // Energy at both ends of the burst, from lines through the ticks before and after it: an idle GPU draws more
      // after a load than before it.
      std::string failure;
      std::vector<double> before_t, before_e, after_t, after_e;
      const double from = trace.busy.back().from + out.lag.value, to = trace.busy.back().to + out.lag.value;
      for (const auto& tick : counter_ticks(trace.readings, out.update_period.value, failure)) {
        if (tick.time < from) before_t.push_back(tick.time - from), before_e.push_back(tick.value);
        // if the counter sleeps, ticks soon after the end still include the burst
        if (tick.time > to + out.update_period.value) after_t.push_back(tick.time - to), after_e.push_back(tick.value);
      }
      if (before_t.size() < 3 || after_t.size() < 3) return;
      seconds[b] = trace.busy.back().length();
      joules[b] = fit_line(after_t, after_e).intercept - fit_line(before_t, before_e).intercept;
    }
    const double watts = (joules[1] - joules[0]) / (seconds[1] - seconds[0]);
    losses.push_back(watts * seconds[0] - joules[0]);
  }
  const double spread = quantile(losses, 1) - quantile(losses, 0);
  out.counter_loss = Calibrated{median(losses), median(losses) - spread, median(losses) + spread};
}

/// Repeats the same load after different histories: determines by how much means over a second differ beyond their own
/// scatter.
void find_repeatability(CalibrationRig& rig, Calibration& out, double period, Random& random) {
  constexpr int kRuns = 10;
  std::vector<double> means;
  double own = 0;
  for (int i = 0; i < kRuns; ++i) {
    const double before = 0.2 + 0.8 * random.uniform(), rest = 0.3 + 0.7 * random.uniform();
    const CalibrationTrace trace = rig.drive({before, rest, 1.2, 0.15}, nullptr);
    if (trace.busy.size() < 2) return;
    const TimeSpan load{trace.busy.back().from + 0.35, trace.busy.back().to};
    std::vector<double> watts;
    for (const Reading& r : as_power(out.sensor, trace.readings, period)) {
      // A counter's increment ends at its tick, a window at its reading.
      const double width = std::max(out.sensor.window, out.sensor.kind == SensorKind::cumulative_energy ? period : 0.0);
      if (r.time - out.sensor.lag - width >= load.from && r.time - out.sensor.lag <= load.to) watts.push_back(r.value);
    }
    if (watts.size() < 4) return;
    const SeriesMean m = batch_mean(watts);
    means.push_back(m.mean);
    own += m.standard_error * m.standard_error / kRuns;
  }
  const double level = mean(means), between = variance(means);
  auto relative = [&](double v) { return std::sqrt(std::max(0.0, v - own)) / level; };
  // Variance of ten: chi-squared with nine degrees of freedom, 95 % interval.
  out.repeatability = Calibrated{relative(between), relative(between * 9 / 19.02), relative(between * 9 / 2.70)};
}

void find_gain(CalibrationRig& rig, Calibration& out, double period) {
  // Constant duty cycles, faster than all windows, at several levels.
  std::vector<double> x, y;
  for (const double duty : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    std::vector<double> on_off;
    const double seconds = 2.0 + 2 * out.window.value, beat = 0.02;
    if (duty == 0)
      on_off = {0.0, seconds};
    else if (duty == 1)
      on_off = {seconds, 0.0};
    else
      for (double t = 0; t < seconds; t += beat) on_off.insert(on_off.end(), {duty * beat, (1 - duty) * beat});
    std::vector<Reading> meter;
    const CalibrationTrace trace = rig.drive(on_off, &meter);
    const auto power = as_power(out.sensor, trace.readings, period);
    if (power.size() < 4 || meter.size() < 4) continue;
    const double from = power.front().time + 0.8 + out.window.value + out.lag.value;
    x.push_back(mean_of(power, from).value);
    y.push_back(mean_of(meter, from).value);
  }
  if (x.size() < 3) {
    out.notes.push_back("the external meter gave too few readings for a gain");
    return;
  }
  const LineFit fit = fit_line(x, y);
  const double t = student_t_quantile(0.975, static_cast<double>(x.size() - 2));
  out.meter = Calibration::Meter{
      rig.meter_id(),
      {fit.slope, fit.slope - t * fit.slope_error, fit.slope + t * fit.slope_error},
      {fit.intercept, fit.intercept - t * fit.intercept_error, fit.intercept + t * fit.intercept_error}};
  SensorInfo& info = out.sensor;
  info.gain = fit.slope;
  info.offset = fit.intercept;
  // Stored as standard deviations of a normal distribution, for any number of degrees of freedom.
  const double widen = t / normal_quantile(0.975);
  info.gain_error = widen * fit.slope_error / fit.slope;
  info.level = mean(y);
  info.level_error = widen * fit.residual_deviation / std::sqrt(static_cast<double>(x.size()));
}

/// Drives a random load, in which every update shows a new value.
CalibrationTrace find_period(CalibrationRig& rig, Calibration& out, Random& random) {
  SensorInfo& info = out.sensor;
  CalibrationTrace trace = rig.drive(random_wave(0.04, 0.6, 6.0, random), nullptr);
  if (trace.readings.size() < 8)
    throw Error(fmt::format("sensor {} gave {} readings in 6 s", info.id, trace.readings.size()));
  out.update_period = find_update_period(trace.readings);
  if (!(out.update_period.value > 0))
    throw Error(fmt::format("sensor {} did not change while a load was switched on and off", info.id));
  info.update_period = out.update_period.value;
  if (info.kind == SensorKind::cumulative_energy) out.counter_step = info.unit_step = counter_step(trace.readings);
  return trace;
}

/// Returns the power under the random load and under square waves.
std::vector<CalibrationTrace> powers_under_waves(CalibrationRig& rig, const Calibration& out,
                                                 CalibrationTrace restless) {
  const double period = out.sensor.update_period;
  std::vector<CalibrationTrace> traces;
  traces.push_back(std::move(restless));
  // Square waves with periods near the update period alias to slow beats, which reveal the window; slow ones reveal
  // windows longer than the update period.
  if (period > 0.01)
    for (const double ratio : {1.0 / 2, 2.0 / 3, 3.0 / 4, 4.0 / 5, 5.0 / 4, 4.0 / 3, 6.0 / 5})
      traces.push_back(rig.drive(square_wave(ratio * period, std::max(1.5, 15 * period)), nullptr));
  traces.push_back(rig.drive(square_wave(1.2, 6.0), nullptr));
  std::vector<CalibrationTrace> powers;
  std::vector<TimeSpan> history;  // a long window still includes earlier waves
  for (const auto& trace : traces) {
    CalibrationTrace power{as_power(out.sensor, trace.readings, period), {}};
    // The first edge follows idleness, after which clocks and power rise slowly.
    const double known = trace.busy.empty() ? 0 : trace.busy.front().from + 0.05;
    std::erase_if(power.readings, [&](const Reading& r) { return r.time < known; });
    history.insert(history.end(), trace.busy.begin(), trace.busy.end());
    power.busy = history;
    powers.push_back(std::move(power));
  }
  return powers;
}

/// Throws Error if the load does not explain the readings.
void note_window(const WindowFit& fit, Calibration& out) {
  out.window = fit.window;
  out.lag = fit.lag;
  out.explained = fit.explained;
  out.explained_other = fit.explained_other;
  if (fit.explained < 0.3)
    throw Error(
        fmt::format("sensor {} does not follow the load: it explains only {:.0f} % of the readings (another device, or "
                    "others use this one?)",
                    out.sensor.id, 100 * std::max(0.0, fit.explained)));
  if (fit.explained < 0.9)
    out.notes.push_back(fmt::format("the load explains only {:.0f} % of what the sensor shows", 100 * fit.explained));
}

/// Sets the window and the kind that the estimators use.
void set_sensor_kind(bool exponential, Calibration& out) {
  SensorInfo& info = out.sensor;
  const double period = info.update_period;
  info.lag = out.lag.value;
  if (info.kind == SensorKind::cumulative_energy) {
    // A counter that integrates continuously looks like a window of the length of its tick.
    const bool sleeps = period > 0.01 && out.window.value < 0.8 * period;
    info.window = sleeps ? out.window.value : 0;
    if (sleeps)
      out.notes.push_back(
          fmt::format("the counter sleeps: it sees {:.0f} of every {:.0f} ms", 1e3 * out.window.value, 1e3 * period));
    return;
  }
  // The shape of a very short window cannot be determined.
  info.kind = out.window.value < 0.2 * period && out.window.value < 0.002 ? SensorKind::instantaneous_power
              : exponential                                               ? SensorKind::exponential_power
                                                                          : SensorKind::windowed_power;
  info.window = out.window.value;
}

/// Measures idle power once the window does not include the load any more.
void find_idle_power(CalibrationRig& rig, bool exponential, Calibration& out) {
  const CalibrationTrace idle = rig.drive({0.0, 2.5 + 2 * out.window.value}, nullptr);
  const auto power = as_power(out.sensor, idle.readings, out.sensor.update_period);
  if (!power.empty())
    out.idle_power = mean_of(power, power.front().time + 1.0 + out.window.value * (exponential ? 1.5 : 1.0));
}

}  // namespace

Calibration calibrate(CalibrationRig& rig) {
  Calibration out;
  out.sensor = rig.sensor();
  SensorInfo& info = out.sensor;
  const bool counter = info.kind == SensorKind::cumulative_energy;
  out.read_cost = from_values(rig.read_costs());
  info.read_cost = out.read_cost.value;
  Random random(20261120);
  CalibrationTrace restless = find_period(rig, out, random);
  const double period = info.update_period;
  const WindowFit fit = fit_window(powers_under_waves(rig, out, std::move(restless)), period);
  note_window(fit, out);
  set_sensor_kind(fit.exponential, out);
  find_idle_power(rig, fit.exponential, out);
  if (counter) find_counter_loss(rig, out);
  // Half a minute does not show all states of a GPU; the value known for its type is the minimum.
  const bool lags = fit.exponential && info.kind != SensorKind::instantaneous_power;
  if (!lags && out.window.value < 0.3) find_repeatability(rig, out, period, random);
  if (out.repeatability) info.repeatability = std::max(info.repeatability, out.repeatability->value);
  if (rig.has_meter()) find_gain(rig, out, period);
  out.shortest_measurement = shortest_measurement(info);
  info.calibrated = true;
  return out;
}

namespace {
nlohmann::ordered_json interval(const Calibrated& c) { return {{"value", c.value}, {"low", c.low}, {"high", c.high}}; }
nlohmann::ordered_json document_of(const Calibration& c) {
  nlohmann::ordered_json document;
  document["sensor"] = c.sensor.id;
  document["update_period"] = interval(c.update_period);
  document["window"] = interval(c.window);
  document["lag"] = interval(c.lag);
  document["kind"] = to_string(c.sensor.kind);
  document["read_cost"] = interval(c.read_cost);
  document["idle_power"] = interval(c.idle_power);
  document["shortest_measurement"] = c.shortest_measurement;
  if (c.repeatability) document["repeatability"] = interval(*c.repeatability);
  if (c.counter_step) document["counter_step"] = *c.counter_step;
  if (c.counter_loss) document["counter_loss"] = interval(*c.counter_loss);
  if (c.meter)
    document["meter"] = {
        {"sensor", c.meter->sensor}, {"gain", interval(c.meter->gain)}, {"offset", interval(c.meter->offset)}};
  document["explained"] = c.explained;
  document["explained_other_shape"] = c.explained_other;
  document["notes"] = c.notes;
  return document;
}
}  // namespace

std::string to_json(const Calibration& calibration) { return document_of(calibration).dump(2); }

std::filesystem::path store_calibration(const Calibration& calibration) {
  const SensorInfo& info = calibration.sensor;
  const auto file = calibration_file(info);
  if (file.empty()) throw Error("nowhere to keep the calibration: HOME is not set (or give ERGOTUNE_DATA_DIR)");
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  nlohmann::ordered_json document;
  if (std::ifstream in(file); in) document = nlohmann::ordered_json::parse(in, nullptr, false);
  // Another driver version may read the sensors differently, so earlier results are dropped.
  if (!document.is_object() || document.value("driver", "") != info.driver) document = nlohmann::ordered_json::object();
  document["board"] = info.uuid.empty() ? info.id : info.uuid;
  document["driver"] = info.driver;
  auto entry = document_of(calibration);
  entry["unit_step"] = info.unit_step;
  entry["repeatability"]["value"] = info.repeatability;
  // As the estimators use it: a counter that integrates continuously has no window.
  entry["window"]["value"] = info.window;
  if (calibration.meter)
    entry["meter"] = {{"sensor", calibration.meter->sensor}, {"gain", info.gain},   {"offset", info.offset},
                      {"gain_error", info.gain_error},       {"level", info.level}, {"level_error", info.level_error}};
  entry["when"] = iso_time(wall_seconds());
  document["sensors"][sensor_role(info)] = entry;
  const auto draft = file.string() + ".new";
  {
    std::ofstream out(draft);
    out << document.dump(2) << '\n';
    if (!out) throw Error(fmt::format("cannot write {}", draft));
  }
  std::filesystem::rename(draft, file, failure);
  if (failure) throw Error(fmt::format("cannot write {}: {}", file.string(), failure.message()));
  return file;
}

}  // namespace ergotune
