#include "measure/energy/region_monitor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/energy/energy_series.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

constexpr double kNormal95 = 1.96;
/// Gaps shorter than this share of the adjacent spans are bridged.
constexpr double kSmallGap = 1e-3;

std::vector<TimeSpan> in_order(std::vector<TimeSpan> spans) {
  std::ranges::sort(spans, [](const TimeSpan& a, const TimeSpan& b) { return a.from < b.from; });
  return spans;
}

std::vector<TimeSpan> joined(const std::vector<TimeSpan>& spans) {
  std::vector<TimeSpan> out;
  for (const TimeSpan& span : in_order(spans)) {
    if (!out.empty() && span.from >= out.back().to &&
        span.from - out.back().to <= kSmallGap * (out.back().length() + span.length()))
      out.back().to = span.to;
    else
      out.push_back(span);
  }
  return out;
}

/// Distributes spans to layers without overlaps.
std::vector<std::vector<TimeSpan>> layers_of(const std::vector<TimeSpan>& spans) {
  std::vector<std::vector<TimeSpan>> layers;
  for (const TimeSpan& span : in_order(spans)) {
    const auto free =
        std::ranges::find_if(layers, [&](const std::vector<TimeSpan>& layer) { return layer.back().to <= span.from; });
    if (free == layers.end())
      layers.push_back({span});
    else
      free->push_back(span);
  }
  return layers;
}

/// Returns the first reading at or after a time.
std::vector<Reading>::const_iterator reading_from(const std::vector<Reading>& readings, double time) {
  return std::lower_bound(readings.begin(), readings.end(), time,
                          [](const Reading& reading, double t) { return reading.time < t; });
}

/// Returns the energy in J of the ticks that overlap with a layer, each counted once; nullopt if the readings do not
/// enclose it.
std::optional<double> ticks_touched(const SensorTrace& trace, const std::vector<TimeSpan>& layer) {
  const SensorInfo& info = trace.info;
  const auto& readings = trace.readings;
  double joules = 0;
  auto counted = readings.begin();  // ticks before it have been counted
  for (const TimeSpan& span : layer) {
    auto before = std::upper_bound(readings.begin(), readings.end(), span.from + info.lag,
                                   [](double t, const Reading& reading) { return t < reading.time; });
    const auto after = reading_from(readings, span.to + info.lag + info.update_period);
    if (before == readings.begin() || after == readings.end()) return std::nullopt;
    before = std::max(std::prev(before), counted);
    if (after <= before) continue;
    if (after->value < before->value) return std::nullopt;
    joules += after->value - before->value;
    counted = after;
  }
  return joules;
}

/// Returns the energy in J of the windows that overlap with a layer, each counted once, for a sensor whose windows
/// cover all of the time; nullopt if readings are missing.
std::optional<double> windows_touched(const SensorTrace& trace, const std::vector<TimeSpan>& layer) {
  const SensorInfo& info = trace.info;
  const std::vector<Reading> updates = power_updates(trace.readings, info.update_period);
  std::vector<bool> counted(updates.size(), false);
  double joules = 0;
  const auto count = [&](std::size_t i) {
    if (!counted[i]) joules += updates[i].value * info.window;
    counted[i] = true;
  };
  // A window ends at the update of its value, which may precede the reading by one period.
  const double open = info.update_period;
  const auto surely_from = [&](std::size_t i) { return updates[i].time - info.lag - info.window + open; };
  const auto surely_to = [&](std::size_t i) { return updates[i].time - info.lag - open; };
  double covered = layer.front().from;
  for (const TimeSpan& span : layer) {
    covered = std::max(covered, span.from);
    while (covered < span.to) {
      constexpr double kBeyond = 1e-6;  // s; less is lost in the host's time after some hours, and the loop never ends
      const auto next = reading_from(updates, covered + info.lag + info.window - open + kBeyond) - updates.begin();
      if (next == 0) return std::nullopt;
      const auto i = static_cast<std::size_t>(next - 1);
      count(i);
      if (surely_to(i) > covered) {
        covered = surely_to(i);
        continue;
      }
      // Either this window or the next one contains it.
      if (i + 1 == updates.size() || updates[i + 1].time - updates[i].time > info.window + 1.5 * open)
        return std::nullopt;
      count(i + 1);
      covered = surely_from(i + 1);
    }
  }
  return joules;
}

/// Returns an upper bound in J.
std::optional<double> upper_bound(const SensorTrace& trace, const std::vector<TimeSpan>& spans) {
  const SensorInfo& info = trace.info;
  const bool counter = info.kind == SensorKind::cumulative_energy;
  const bool covers = info.kind == SensorKind::windowed_power && info.window > 0.99 * info.update_period;
  double sum = 0;
  for (const std::vector<TimeSpan>& layer : layers_of(spans)) {
    std::optional<double> seen;
    if (counter) seen = ticks_touched(trace, layer);
    if (covers) seen = windows_touched(trace, layer);
    double most = 0;
    for (const TimeSpan& span : layer) most += info.most_power * span.length();
    if (most > 0) seen = std::min(seen.value_or(most), most);
    if (!seen) return std::nullopt;
    sum += *seen * (1 + kNormal95 * calibration_error(info, info.most_power > 0 ? info.most_power : info.level));
  }
  return sum;
}

double margin_of(const SensorInfo& info, double period) {
  return std::min(kMostMargin, 4 * (reading_margin(info) + period));
}

/// Returns the readings near a span, since a trace may cover hours.
SensorTrace near(const SensorTrace& trace, const TimeSpan& span, double period) {
  SensorTrace out;
  out.info = trace.info;
  out.info.update_period = std::max(trace.info.update_period, period);
  out.failure = trace.failure;
  const double margin = margin_of(out.info, period);
  out.readings.assign(reading_from(trace.readings, span.from - margin), reading_from(trace.readings, span.to + margin));
  return out;
}

/// Returns the standard error in J from the time that a power sensor does not cover between its windows. The power
/// there is assumed to vary as it does between windows.
double unseen_error(const SensorTrace& part, const TimeSpan& span) {
  const SensorInfo& info = part.info;
  const double window = info.kind == SensorKind::instantaneous_power ? 0 : info.window;
  if (info.kind == SensorKind::cumulative_energy || window > 0.99 * info.update_period) return 0;
  double squares = 0, count = 0;
  const std::vector<PowerOver> series = power_series(part, {-INFINITY, INFINITY}, {});
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (series[i - 1].from < span.from || series[i].to > span.to) continue;
    squares += std::pow(series[i].watts - series[i - 1].watts, 2);
    ++count;
  }
  if (count == 0) return 0;  // only the ends contribute
  const double share = 1 - window / info.update_period;
  // A small number of differences may be small by chance.
  return share * std::sqrt(squares / (2 * count) * info.update_period * span.length() * (1 + 3 / count));
}

std::vector<std::unique_ptr<Sensor>> open_sensors(std::vector<std::string> ids) {
  if (ids.empty()) ids = sensors_of_machine();
  if (ids.empty())
    throw UserError("no sensor of energy or power can be read here; \"ergotune doctor\" lists what is missing");
  std::vector<std::unique_ptr<Sensor>> sensors;
  for (const std::string& id : ids) sensors.push_back(open_sensor(id));
  require_disjoint(sensors);
  return sensors;
}

}  // namespace

double region_reading_period(const SensorInfo& sensor) { return std::clamp(sensor.update_period / 2, 0.02, 0.1); }

SensorEnergy energy_of_regions(const SensorTrace& trace, const std::vector<TimeSpan>& spans,
                               const std::optional<IdlePower>& idle, double period, double share_reading) {
  SensorEnergy out;
  out.sensor = trace.info.id;
  out.at_most = upper_bound(trace, spans);
  double joules = 0, edges = 0, unresolved = 0, seconds = 0;
  bool valued = true;
  for (const TimeSpan& span : joined(spans)) {
    const SensorTrace part = near(trace, span, period);
    const SpanEnergy energy = energy_over(part, {span}).front();
    seconds += span.length();
    if (!energy.why_not.empty()) {
      valued = false;
      out.why_not = energy.why_not;
      continue;
    }
    joules += energy.joules;
    const double error = std::hypot(energy.edge_error, unseen_error(part, span));
    // Energy that a sensor cannot resolve within its update may be outside of each region in the same way, so that
    // these errors add up.
    if (kNormal95 * error > 0.5 * energy.joules)
      unresolved += kNormal95 * error;
    else
      edges = std::hypot(edges, error);
  }
  if (!valued) {
    if (out.at_most) out.why_not.clear();
    return out;
  }
  const double watts = seconds > 0 ? joules / seconds : 0;
  const double lasting = std::hypot(trace.info.repeatability, calibration_error(trace.info, watts)) * joules;
  const double half_width = kNormal95 * std::hypot(edges, lasting) + unresolved + share_reading * joules;
  if (half_width > 0.5 * joules) {
    if (!out.at_most) out.why_not = "the region is too short for it";
    return out;
  }
  out.joules = joules;
  out.half_width = half_width;
  if (!out.at_most || *out.at_most < joules) out.at_most = joules + half_width;
  if (idle) {
    out.above_idle = joules - idle->watts * seconds;
    out.above_idle_half_width = std::hypot(half_width, kNormal95 * idle->standard_error * seconds);
  }
  return out;
}

RegionEnergy sum_of(std::string name, const std::vector<TimeSpan>& spans, std::vector<SensorEnergy> sensors) {
  RegionEnergy out;
  out.name = std::move(name);
  out.regions = spans.size();
  for (const TimeSpan& span : spans) out.seconds += span.length();
  out.joules = out.at_most = out.above_idle = 0;
  for (const SensorEnergy& one : sensors) {
    const auto add = [](std::optional<double>& sum, const std::optional<double>& value) {
      sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
    };
    add(out.joules, one.joules);
    add(out.at_most, one.at_most);
    add(out.above_idle, one.above_idle);
    out.half_width = std::hypot(out.half_width, one.half_width);
    out.above_idle_half_width = std::hypot(out.above_idle_half_width, one.above_idle_half_width);
  }
  if (!out.joules) out.half_width = 0;
  if (!out.above_idle) out.above_idle_half_width = 0;
  out.sensors = std::move(sensors);
  return out;
}

RegionMonitor::RegionMonitor(const std::vector<std::string>& ids)
    : recorder_(std::make_unique<SensorRecorder>(open_sensors(ids))), process_(::getpid()) {
  recorder_->begin(region_reading_period);
  recorder_->wait();
}

RegionMonitor::~RegionMonitor() {
  // The recorder's thread does not exist in a forked process and cannot be joined.
  if (!is_here()) (void)recorder_.release();
}

bool RegionMonitor::is_here() const { return ::getpid() == process_; }

void RegionMonitor::require_here() const {
  if (!is_here())
    throw UserError("this energy monitor was opened before the process was forked: open one in the new process");
}

std::vector<std::string> RegionMonitor::sensors() const {
  std::vector<std::string> ids;
  for (const auto& sensor : recorder_->sensors()) ids.push_back(sensor->info().id);
  return ids;
}

std::vector<IdlePower> RegionMonitor::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

void RegionMonitor::measure_idle(double seconds) {
  require_here();
  if (!(seconds > 0)) throw UserError("the time in which idle power is measured must be above 0 s");
  TimeSpan span;
  span.from = host_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  span.to = host_seconds();
  std::vector<IdlePower> idle;
  for (const SensorEnergy& one : energy("idle", {span}).sensors) {
    if (!one.joules)
      throw UserError(fmt::format("{}: idle power cannot be measured in {:g} s{}; measure it longer", one.sensor,
                                  seconds, one.why_not.empty() ? std::string() : " (" + one.why_not + ")"));
    idle.push_back({*one.joules / span.length(), one.half_width / (1.96 * span.length())});
  }
  const std::lock_guard lock(mutex_);
  idle_ = std::move(idle);
}

void RegionMonitor::set_idle_power(const std::vector<double>& watts) {
  const std::size_t count = recorder_->sensors().size();
  if (watts.size() != count)
    throw UserError(fmt::format("{} idle powers are given for {} sensors", watts.size(), count));
  std::vector<IdlePower> idle;
  for (const double power : watts) {
    if (!(power >= 0)) throw UserError("an idle power is a number of W, not below 0");
    idle.push_back({power, 0});
  }
  const std::lock_guard lock(mutex_);
  idle_ = std::move(idle);
}

RegionEnergy RegionMonitor::energy(const std::string& name, const std::vector<TimeSpan>& spans) const {
  require_here();
  double first = spans.empty() ? 0 : spans.front().from, last = 0, period = 0;
  for (const TimeSpan& span : spans) first = std::min(first, span.from), last = std::max(last, span.to);
  for (const auto& sensor : recorder_->sensors()) period = std::max(period, region_reading_period(sensor->info()));
  recorder_->wait(last + period);
  const std::vector<IdlePower> idle = this->idle();
  const std::vector<double> costs = recorder_->shares_reading();
  std::vector<SensorEnergy> energies;
  const std::vector<SensorTrace> traces = recorder_->traces(first - kMostMargin);
  for (std::size_t i = 0; i < traces.size(); ++i)
    energies.push_back(energy_of_regions(traces[i], spans, idle.empty() ? std::nullopt : std::optional(idle[i]),
                                         region_reading_period(traces[i].info), costs[i]));
  return sum_of(name, spans, std::move(energies));
}

}  // namespace ergotune
