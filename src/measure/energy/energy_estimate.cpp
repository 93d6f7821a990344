// Computes energy, power and time per launch from recorded data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/statistics.hpp"
#include "measure/energy/energy.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/energy/energy_series.hpp"

namespace ergotune {

LaunchAxis::LaunchAxis(const LaunchStream& stream) {
  const auto& marks = stream.marks;
  if (marks.empty()) return;
  const bool has_device_time = marks.back().device_seconds > 0;
  // The host observes a mark late, never early, so that device time plus the smallest observed delay is the best
  // estimate. The two clocks diverge noticeably only over many seconds, so the delay is determined piecewise.
  constexpr std::size_t kPiece = 256;
  for (std::size_t begin = 0; begin < marks.size(); begin += kPiece) {
    const std::size_t end = std::min(begin + kPiece, marks.size());
    double offset = INFINITY;
    for (std::size_t i = begin; i < end; ++i) offset = std::min(offset, marks[i].host_time - marks[i].device_seconds);
    for (std::size_t i = begin; i < end; ++i) {
      double time = has_device_time ? marks[i].device_seconds + offset : marks[i].host_time;
      if (!times_.empty()) time = std::max(time, times_.back());
      times_.push_back(time);
      launches_.push_back(static_cast<double>(marks[i].launches));
      // A shorter gap does not affect readings noticeably.
      constexpr double kShortestPause = 5e-4;
      if (times_.size() > 1 && launches_.back() == launches_[launches_.size() - 2] &&
          time - times_[times_.size() - 2] > kShortestPause)
        pauses_.push_back({times_[times_.size() - 2], time});
    }
  }
}

double LaunchAxis::launches_at(double host_time) const {
  if (times_.empty()) return 0;
  const auto after = std::upper_bound(times_.begin(), times_.end(), host_time);
  if (after == times_.begin()) return launches_.front();
  if (after == times_.end()) return launches_.back();
  const auto i = static_cast<std::size_t>(after - times_.begin());
  const double dt = times_[i] - times_[i - 1];
  const double share = dt > 0 ? (host_time - times_[i - 1]) / dt : 1.0;
  return launches_[i - 1] + share * (launches_[i] - launches_[i - 1]);
}

LaunchAxis::PerLaunch LaunchAxis::time_per_launch(TimeSpan span) const {
  PerLaunch out;
  std::vector<double> each;
  double seconds = 0, launches = 0;
  for (std::size_t i = 1; i < times_.size(); ++i) {
    if (times_[i - 1] < span.from || times_[i] > span.to || launches_[i] == launches_[i - 1]) continue;
    seconds += times_[i] - times_[i - 1];
    launches += launches_[i] - launches_[i - 1];
    each.push_back((times_[i] - times_[i - 1]) / (launches_[i] - launches_[i - 1]));
  }
  if (launches <= 0) return out;
  out.seconds = seconds / launches;
  out.launches = std::llround(launches);
  const SeriesMean mean = batch_mean(each);
  out.standard_error = std::isfinite(mean.standard_error) ? mean.standard_error : 0.0;
  return out;
}

double shortest_measurement(const SensorInfo& info) {
  switch (info.kind) {
    case SensorKind::cumulative_energy:
      return std::max(4 * info.update_period, 0.02) + info.lag;
    case SensorKind::windowed_power:
      return info.window + std::max(4 * info.update_period, 0.02) + info.lag;
    case SensorKind::exponential_power:
      return std::max(0.5 * info.window, 20 * info.update_period) + info.lag;
    case SensorKind::instantaneous_power:
      return std::max(4 * info.update_period, 0.02) + info.lag;
  }
  return 0.1;
}

namespace {

/// Returns the approximate mean power over a span, for the settling test only.
std::optional<double> rough_power(const SensorTrace& trace, TimeSpan span) {
  double sum = 0;
  int count = 0;
  if (trace.info.kind == SensorKind::cumulative_energy) {
    const Reading *first = nullptr, *last = nullptr;
    double previous = NAN;
    for (const auto& r : trace.readings) {
      const bool edge = !std::isnan(previous) && r.value > previous;
      previous = r.value;
      if (!edge || r.time < span.from || r.time > span.to) continue;
      if (!first) first = &r;
      last = &r;
    }
    if (!first || first == last) return std::nullopt;
    return (last->value - first->value) / (last->time - first->time);
  }
  for (const auto& r : trace.readings) {
    if (r.time < span.from || r.time > span.to) continue;
    sum += r.value;
    ++count;
  }
  if (count < 2) return std::nullopt;
  return sum / count;
}

}  // namespace

std::optional<double> settled_from(const EnergyTrace& trace, const EnergyOptions& options, double now) {
  const auto& marks = trace.stream.marks;
  if (marks.size() < 6 || now - trace.stream.queued_at < options.settle_at_least) return std::nullopt;
  const LaunchAxis axis(trace.stream);
  const double end = std::min(now, axis.end());
  const double gap = (axis.end() - axis.begin()) / static_cast<double>(marks.size() - 1);
  const double window = std::max(0.06, 3 * gap);
  if (end - 2 * window < axis.begin()) return std::nullopt;
  const double before = axis.launches_at(end - window) - axis.launches_at(end - 2 * window);
  const double after = axis.launches_at(end) - axis.launches_at(end - window);
  if (!(before > 0) || std::abs(after / before - 1) > options.rate_tolerance) return std::nullopt;
  // The sensor with the finest resolution that has data determines the power.
  const SensorTrace* finest = nullptr;
  auto grain = [](const SensorInfo& info) {
    return std::max(info.update_period, info.kind == SensorKind::cumulative_energy ? 0.0 : info.window);
  };
  for (const auto& sensor : trace.sensors)
    if (!sensor.readings.empty() && (!finest || grain(sensor.info) < grain(finest->info))) finest = &sensor;
  if (!finest) return std::nullopt;
  const double span = std::max(window, 2.5 * std::max(finest->info.update_period, 0.0));
  const double latest = finest->readings.back().time;
  if (finest->info.kind != SensorKind::exponential_power && finest->info.window < 0.3) {
    const auto late = rough_power(*finest, {latest - span, latest});
    const auto early = rough_power(*finest, {latest - 2 * span, latest - span});
    if (!late || !early || *early <= 0 || std::abs(*late / *early - 1) > options.power_tolerance) return std::nullopt;
  }
  // Rapid warming: temperatures are coarse, so only a change within a second counts.
  double low = INFINITY, high = -INFINITY;
  for (const auto& [time, state] : trace.gpu) {
    if (time < now - 1 || !state.temperature_c) continue;
    low = std::min(low, *state.temperature_c);
    high = std::max(high, *state.temperature_c);
  }
  if (high - low > 5) return std::nullopt;
  return end - window;
}

bool precise_enough(const EnergyResult& result, const EnergyOptions& options) {
  const auto energy = result.quantities.find("energy");
  if (result.status != Status::ok || energy == result.quantities.end() || energy->second.n < 6) return false;
  // With few readings the scatter itself is uncertain, so a higher precision is required.
  const double margin = energy->second.n < 12 ? 0.8 : 1.0;
  return result.scatter_half_width <= margin * options.precision * energy->second.value;
}

namespace {
/// Returns the difference in K between the lowest and the highest temperature of the GPU within a span; 0 if
/// temperatures are unknown.
double temperature_change(const EnergyTrace& trace, TimeSpan span) {
  double coolest = INFINITY, hottest = -INFINITY;
  for (const auto& [when, state] : trace.gpu) {
    if (when < span.from || when > span.to || !state.temperature_c) continue;
    coolest = std::min(coolest, *state.temperature_c);
    hottest = std::max(hottest, *state.temperature_c);
  }
  return std::max(0.0, hottest - coolest);
}

Quantity quantity(double value, double error, std::int64_t n, std::string method, std::string sensor) {
  Quantity q;
  q.value = value;
  q.standard_error = error;
  q.n = n;
  q.method = std::move(method);
  q.sensor = std::move(sensor);
  return q;
}

/// J per launch and W over one span, combined from all sensors.
struct EnergyAndPower {
  SlopeEstimate energy, watts;
};

EnergyAndPower slopes_over(const EnergyTrace& trace, TimeSpan span, const LaunchAxis& axis,
                           const EnergyOptions& options) {
  const EnergyAxis launches = [&](double t) { return axis.launches_at(t); };
  // Time of work, without pauses.
  const EnergyAxis time = [&](double t) {
    double busy = t;
    for (const auto& pause : axis.pauses()) busy -= std::clamp(t - pause.from, 0.0, pause.length());
    return busy;
  };
  std::vector<SlopeEstimate> per_launch, power;
  for (const auto& sensor : trace.sensors) {
    per_launch.push_back(estimate_slope(sensor, span, launches, axis.pauses()));
    power.push_back(estimate_slope(sensor, span, time, axis.pauses()));
    if (!options.combine_sensors && per_launch.back().valid) break;
  }
  return {combine(per_launch), combine(power)};
}

/// The limit as the sensor reads it: the GPU controls it with its own sensor, whose readings a meter may have
/// corrected.
double limit_of(const SensorInfo& info, double limit) { return info.gain * limit + info.offset; }

/// Replaces energy and power by their long-term values if a power limit slows the GPU down. Time remains as measured.
/// Returns whether it did.
bool use_capped_estimate(const EnergyTrace& trace, TimeSpan span, const LaunchAxis& axis, const EnergyOptions& options,
                         EnergyAndPower& found) {
  const auto limit = binding_power_limit(trace, span);
  if (!limit) return false;
  std::optional<CappedEstimate> best;
  for (const auto& sensor : trace.sensors) {
    const auto one = estimate_capped(sensor, span, axis, limit_of(sensor.info, *limit));
    if (one && (!best || one->relative_error < best->relative_error)) best = one;
    if (!options.combine_sensors && best) break;
  }
  if (!best) return false;
  auto& [energy, watts] = found;
  // The oscillation is not a drift of the long-term value.
  energy.drift = watts.drift = 0;
  energy.value = best->energy;
  energy.standard_error = best->energy * best->relative_error;
  energy.degrees = best->degrees;
  energy.n = best->n;
  energy.sensor = watts.sensor = best->sensor;
  energy.method = watts.method = "power over launch rate, at the power limit";
  watts.value = best->energy / best->seconds;
  watts.standard_error = energy.standard_error / best->seconds;
  watts.degrees = best->degrees;
  watts.n = best->n;
  return true;
}

/// Replaces energy and power by those of long runs if the limit is going to slow the GPU down. Time remains as
/// measured. Returns whether it did.
bool use_long_run_estimate(const EnergyTrace& trace, TimeSpan span, const LaunchAxis::PerLaunch& per,
                           EnergyAndPower& found) {
  auto& [energy, watts] = found;
  const auto limit = enforced_power_limit(trace, span);
  const auto sensor = std::ranges::find_if(
      trace.sensors, [&](const SensorTrace& one) { return found.watts.sensor.starts_with(one.info.id); });
  if (!limit || sensor == trace.sensors.end() || !(per.launches > 0)) return false;
  const double watts_allowed = limit_of(sensor->info, *limit);
  const auto long_run = estimate_long_run(watts, per.seconds, watts_allowed);
  if (!long_run) return false;
  energy.warnings.push_back(fmt::format(
      "the power limit of {:.4g} W had not yet reduced {:.4g} W: energy and power are estimated for long runs", *limit,
      watts.value));
  const double scatter = std::hypot(0.25 * watts.standard_error / watts.value, per.standard_error / per.seconds);
  energy.drift = watts.drift = 0;
  energy.value = long_run->energy;
  energy.standard_error = scatter * energy.value;
  energy.systematic = std::hypot(energy.systematic, long_run->relative_error);
  watts.value = watts_allowed;
  watts.standard_error = scatter * watts.value;
  energy.method = watts.method = "power limit times time";
  return true;
}

/// Adds energy, power and idle-subtracted energy. Standard errors are stored such that 1.96 of them are the half-width
/// of the 95 % confidence interval for any number of degrees of freedom.
void note_energy(const EnergyTrace& trace, const EnergyOptions& options, const EnergyAndPower& found,
                 const LaunchAxis::PerLaunch& per, EnergyResult& result) {
  const auto& [energy, watts] = found;
  const double z = normal_quantile(0.975);
  // Half of the drift over the span is part of the interval, since the value will continue to change.
  auto scatter = [](const SlopeEstimate& e) { return std::hypot(e.half_width(), 0.5 * e.drift * e.value); };
  // Leakage: 0.3 to 0.6 % of the power per kelvin over six kernels and three H100 GPUs (docs/measurements). The
  // temperature may change by the same amount again.
  constexpr double kPowerPerKelvin = 0.0045;
  const double moving = kPowerPerKelvin * temperature_change(trace, result.measured);
  auto whole = [&](const SlopeEstimate& e) {
    // Nothing is assumed about a GPU whose repeatability is unknown.
    const double state = e.repeatability > 0 ? std::hypot(e.repeatability, moving) : 0;
    return std::hypot(scatter(e), z * state * e.value, z * e.systematic * e.value);
  };
  result.drift = energy.drift;
  result.scatter_half_width = scatter(energy);
  result.half_width = whole(energy);
  result.quantities["energy"] = quantity(energy.value, result.half_width / z, energy.n, energy.method, energy.sensor);
  if (watts.valid)
    result.quantities["power"] = quantity(watts.value, whole(watts) / z, watts.n, watts.method, watts.sensor);
  if (options.idle_power && per.launches > 0)
    result.quantities["idle_subtracted_energy"] = quantity(
        energy.value - *options.idle_power * per.seconds,
        std::hypot(result.half_width / z, *options.idle_power * per.standard_error,
                   options.idle_power_error * per.seconds),
        energy.n, fmt::format("{} less {:.4g} W of idle power", energy.method, *options.idle_power), energy.sensor);
  result.warnings = energy.warnings;
  if (std::abs(energy.drift) > 0.02)
    result.warnings.push_back(
        fmt::format("energy per launch drifted by {:.1f} % while it was measured", 100 * energy.drift));
}

/// Adds the state of the GPU during the measurement.
void note_gpu(const EnergyTrace& trace, EnergyResult& result) {
  const TimeSpan span = result.measured;
  RunningStatistics core, memory, temperature, voltage;
  std::set<std::string> reasons;
  std::set<int> strangers;
  for (const auto& [when, state] : trace.gpu) {
    if (when < span.from || when > span.to) continue;
    if (state.core_clock_mhz) core.add(*state.core_clock_mhz * 1e6);
    if (state.memory_clock_mhz) memory.add(*state.memory_clock_mhz * 1e6);
    if (state.core_voltage_v) voltage.add(*state.core_voltage_v);
    if (state.temperature_c) temperature.add(*state.temperature_c);
    for (const auto& reason : state.clock_reasons)
      if (reason != "idle" && reason != "application_clocks") reasons.insert(reason);
    if (state.foreign_processes) strangers.insert(state.foreign_processes->begin(), state.foreign_processes->end());
  }
  auto observed = [&](const char* name, const RunningStatistics& s) {
    if (s.count() > 0)
      result.quantities[name] =
          quantity(s.mean(), s.standard_error(), static_cast<std::int64_t>(s.count()), "device monitor", "");
  };
  observed("core_clock", core);
  observed("memory_clock", memory);
  observed("temperature", temperature);
  observed("core_voltage", voltage);
  for (std::string reason : reasons) {
    std::ranges::replace(reason, '_', ' ');
    result.warnings.push_back(reason);
  }
  if (!strangers.empty())
    result.warnings.push_back(
        fmt::format("{} foreign process(es) on the device, first pid {}", strangers.size(), *strangers.begin()));
  if (const double change = temperature_change(trace, span); change > 5)
    result.warnings.push_back(fmt::format("temperature changed by {:.0f} degrees while it was measured", change));
}

/// Adds the energy at the reference temperature. Leakage power grows with temperature, independently of the kernel; it
/// is modelled with the GPU's coefficient.
void note_corrected(const EnergyOptions& options, const LaunchAxis::PerLaunch& per, EnergyResult& result) {
  const auto temperature = result.quantities.find("temperature");
  if (!options.correction || per.launches <= 0 || temperature == result.quantities.end()) return;
  const Quantity& energy = result.quantities.at("energy");
  const auto& [celsius, watts, error] = *options.correction;
  const double joules_per_watt = (temperature->second.value - celsius) * per.seconds;
  Quantity corrected =
      quantity(energy.value - watts * joules_per_watt, std::hypot(energy.standard_error, error * joules_per_watt),
               energy.n, fmt::format("{} at {:g} °C by {:.3g} W per °C", energy.method, celsius, watts), energy.sensor);
  corrected.provenance = Provenance::modelled;
  result.quantities["corrected_energy"] = std::move(corrected);
}

}  // namespace

EnergyResult estimate_energy(const EnergyTrace& trace, const EnergyOptions& options) {
  EnergyResult result;
  const LaunchAxis axis(trace.stream);
  const TimeSpan span{trace.settled_at, axis.end()};
  result.measured = span;
  EnergyAndPower found = slopes_over(trace, span, axis, options);
  const auto per = axis.time_per_launch(span);
  if (per.launches > 0)
    result.quantities["time"] =
        quantity(per.seconds, per.standard_error, per.launches, "device markers of the energy stream", "");
  if (!found.energy.valid) {
    result.status = Status::unsupported;
    result.message = "no energy: " + found.energy.why_not;
    return result;
  }
  const bool is_long_run = !options.whole_budget && !use_capped_estimate(trace, span, axis, options, found) &&
                           use_long_run_estimate(trace, span, per, found);
  note_energy(trace, options, found, per, result);
  if (is_long_run)
    for (auto& [name, quantity] : result.quantities)
      if (name != "time") quantity.provenance = Provenance::modelled;
  note_gpu(trace, result);
  note_corrected(options, per, result);
  const double energy = found.energy.value;
  if (!(result.half_width <= kWidestInterval * energy)) {
    // A value this uncertain must not become the best by chance.
    result.status = Status::unsupported;
    result.message = fmt::format("energy is known to +-{:.0f} % only", 100 * result.half_width / energy);
    for (const char* name : {"energy", "power", "idle_subtracted_energy", "corrected_energy"})
      result.quantities.erase(name);
    return result;
  }
  if (!options.whole_budget && result.scatter_half_width > options.precision * energy) {
    result.status = Status::not_converged;
    result.message = fmt::format("energy is known to {:.2f} %, {:.2f} % was asked",
                                 100 * result.scatter_half_width / energy, 100 * options.precision);
  }
  return result;
}

// Combines the estimates of several sensors.
namespace {

/// Finds two estimates of one scope that are both precise to 10 % but contradict each other. Returns a message, or an
/// empty string if there are none.
std::string contradiction(const std::vector<SlopeEstimate>& estimates) {
  constexpr double kKnown = 0.1, kApart = 1.3;
  const SlopeEstimate *low = nullptr, *high = nullptr;
  for (const auto& e : estimates) {
    if (!e.valid || e.half_width() > kKnown * e.value) continue;
    if (low && low->scope != e.scope) continue;
    if (!low || e.value < low->value) low = &e;
    if (!high || e.value > high->value) high = &e;
  }
  if (!low || high->value <= kApart * low->value) return {};
  return fmt::format("{} reads {:.4g} and {} reads {:.4g}: neither is credible", low->sensor, low->value, high->sensor,
                     high->value);
}

/// Returns the estimates that enter the mean.
std::vector<const SlopeEstimate*> precise_ones(const std::vector<SlopeEstimate>& estimates) {
  const bool metered = std::ranges::any_of(estimates, [](const auto& e) { return e.valid && e.metered; });
  std::vector<const SlopeEstimate*> good;
  double best = INFINITY;
  for (const auto& e : estimates)
    if (e.valid && e.metered == metered) best = std::min(best, e.half_width());
  for (const auto& e : estimates)
    if (e.valid && e.metered == metered && e.half_width() <= 3 * best) good.push_back(&e);
  return good;
}

}  // namespace

SlopeEstimate combine(const std::vector<SlopeEstimate>& estimates) {
  SlopeEstimate none;
  if (none.why_not = contradiction(estimates); !none.why_not.empty()) return none;
  const std::vector<const SlopeEstimate*> good = precise_ones(estimates);
  if (good.empty()) {
    for (const auto& e : estimates) none.why_not += (none.why_not.empty() ? "" : "; ") + e.why_not;
    return none;
  }
  SlopeEstimate out = *good.front();
  if (good.size() == 1) return out;
  // Sensors of one GPU measure the same power, so that their errors are correlated: the standard error does not shrink,
  // and half of the sensors' difference is added.
  const auto count = static_cast<double>(good.size());
  double value = 0, error = 0, low = INFINITY, high = -INFINITY, worst = 0;
  out.n = 0;
  out.method.clear();
  out.sensor.clear();
  out.warnings.clear();
  out.drift = 0;
  for (const auto* e : good) {
    value += e->value / count;
    error += e->standard_error / count;
    low = std::min(low, e->value);
    high = std::max(high, e->value);
    worst = std::max(worst, e->standard_error);
    out.degrees = std::max(out.degrees, e->degrees);
    out.n += e->n;
    out.covered.from = std::min(out.covered.from, e->covered.from);
    out.covered.to = std::max(out.covered.to, e->covered.to);
    out.method += (out.method.empty() ? "" : " and ") + e->method;
    out.sensor += (out.sensor.empty() ? "" : ",") + e->sensor;
    out.warnings.insert(out.warnings.end(), e->warnings.begin(), e->warnings.end());
    if (std::abs(e->drift) > std::abs(out.drift)) out.drift = e->drift;
    out.repeatability = std::max(out.repeatability, e->repeatability);
    out.systematic = std::max(out.systematic, e->systematic);
  }
  out.value = value;
  const double difference = high - low;
  out.standard_error = error;
  if (difference > 3 * std::sqrt(2.0) * worst) {
    out.standard_error = std::hypot(error, difference / 4);
    if (difference > 0.02 * value)
      out.warnings.push_back(fmt::format("sensors disagree by {:.1f} %", 100 * difference / value));
  }
  return out;
}

}  // namespace ergotune
