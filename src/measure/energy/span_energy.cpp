#include "measure/energy/span_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/clock.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/energy/energy_series.hpp"

namespace ergotune {
namespace {

/// Power as a function of time, from the intervals to which a sensor's readings refer.
class PowerOverTime {
 public:
  PowerOverTime(const std::vector<PowerOver>& series, bool steps) : series_(series), steps_(steps) {}

  double begin() const { return steps_ ? series_.front().from : series_.front().middle(); }
  double end() const { return steps_ ? series_.back().to : series_.back().middle(); }

  /// Returns the energy in J between two times of work that begins and ends there; beyond the first and last reading,
  /// their power is assumed. A counter's ticks seldom coincide with the beginning or the end: the energy between a tick
  /// and a later beginning, or an earlier end, was drawn at the power before, or after, the work.
  double integral(double from, double to) const {
    if (steps_ && from >= begin() && to <= end()) return level(to, true) - level(from, false);
    double joules = std::max(0.0, std::min(begin(), to) - from) * series_.front().watts +
                    std::max(0.0, to - std::max(end(), from)) * series_.back().watts;
    if (steps_) {
      for (const PowerOver& p : series_) joules += std::max(0.0, std::min(p.to, to) - std::max(p.from, from)) * p.watts;
      return joules;
    }
    for (std::size_t i = 1; i < series_.size(); ++i) joules += trapezoid(series_[i - 1], series_[i], from, to);
    return joules;
  }

 private:
  static double trapezoid(const PowerOver& a, const PowerOver& b, double from, double to) {
    const double width = b.middle() - a.middle(), low = std::max(from, a.middle()), high = std::min(to, b.middle());
    if (!(high > low)) return 0;
    const auto at = [&](double t) { return a.watts + (b.watts - a.watts) * (t - a.middle()) / width; };
    return 0.5 * (at(low) + at(high)) * (high - low);
  }

  /// Returns the counter's energy in J since the first tick, extrapolated to `time` with the power of the next interval
  /// (`after`) or of the previous one.
  double level(double time, bool after) const {
    double joules = 0;
    std::size_t i = 0;
    for (; i + 1 < series_.size() && series_[i].to < time; ++i) joules += series_[i].joules();
    if (after) {
      const PowerOver& beyond = i + 1 < series_.size() ? series_[i + 1] : series_[i];
      return joules + series_[i].joules() - (series_[i].to - time) * std::min(beyond.watts, series_[i].watts);
    }
    const PowerOver& beyond = i > 0 ? series_[i - 1] : series_[i];
    return joules + (time - series_[i].from) * std::min(beyond.watts, series_[i].watts);
  }

  const std::vector<PowerOver>& series_;
  bool steps_;
};

double edge_width(const SensorInfo& info) { return std::max(info.update_period, info.window); }

/// Returns the time in s between readings of a sensor while the measured program runs.
double period_during_program(const SensorInfo& info) {
  return info.kind == SensorKind::cumulative_energy ? 1.0 : info.update_period;
}

std::vector<SpanEnergy> none(std::size_t count, const std::string& why) {
  return std::vector<SpanEnergy>(count, SpanEnergy{why});
}

}  // namespace

double reading_margin(const SensorInfo& info) { return info.lag + 0.5 * info.window + 2.2 * info.update_period + 1e-3; }

double shortest_span(const SensorInfo& info) { return std::max(10 * info.update_period, 3 * info.window); }

std::vector<SpanEnergy> energy_over(const SensorTrace& whole, const std::vector<TimeSpan>& spans) {
  SensorTrace trace = whole;
  if (std::string why = drop_implausible(trace); !why.empty()) return none(spans.size(), why);
  const bool counter = trace.info.kind == SensorKind::cumulative_energy;
  std::string failure;
  if (counter) (void)counter_ticks(trace.readings, trace.info.update_period, failure);
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const std::vector<PowerOver> series = power_series(trace, {-kAll, kAll}, {});
  if (failure.empty() && series.empty()) failure = "no reading came";
  if (!failure.empty()) return none(spans.size(), whole.failure.empty() ? failure : whole.failure);
  const PowerOverTime power(series, counter);
  std::vector<SpanEnergy> energies;
  for (const TimeSpan& span : spans) {
    SpanEnergy energy;
    // A small part may be missing at the ends; more is not extrapolated.
    const double missing = std::max(0.0, power.begin() - span.from) + std::max(0.0, span.to - power.end());
    if (missing > std::max(0.1 * span.length(), 1.1 * edge_width(trace.info))) {
      energy.why_not = whole.failure.empty()
                           ? fmt::format("its readings leave out {:.2g} s of {:.2g} s", missing, span.length())
                           : whole.failure;
    } else {
      energy.joules = power.integral(span.from, span.to);
      const double watts = energy.joules / span.length();
      if (std::string why = why_implausible(trace.info, watts); !why.empty()) {
        energy.why_not = why;
      } else if (!(energy.joules > 0)) {
        energy.why_not = "it reads no power at all";
      }
      // A uniform error of one width at each end.
      energy.edge_error = watts * edge_width(trace.info) / std::sqrt(6.0);
    }
    energies.push_back(std::move(energy));
  }
  return energies;
}

void SensorRecorder::read(std::size_t sensor) {
  std::vector<Reading> fresh;
  const double start = host_seconds();
  const ReadStatus status = sensors_[sensor]->read(fresh);
  const double used = host_seconds() - start;
  const std::lock_guard lock(mutex_);
  costs_[sensor] += used;
  SensorTrace& trace = traces_[sensor];
  trace.readings.insert(trace.readings.end(), fresh.begin(), fresh.end());
  if (status == ReadStatus::failed || status == ReadStatus::not_supported)
    trace.failure = sensors_[sensor]->last_error();
  else if (status == ReadStatus::ok)
    trace.failure.clear();
}

/// Reads each sensor at its own rate; whenever a program begins or ends, all are read at once.
void SensorRecorder::loop(const std::vector<double>& periods) {
  std::vector<double> due(sensors_.size(), 0);
  bool beside = false;
  for (bool active = true; active;) {
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < sensors_.size(); ++i) {
      const double start = host_seconds();
      if (start >= due[i]) {
        read(i);
        // Readings are at least as far apart as a read takes, so that reading does not load the measured machine.
        const double end = host_seconds(), used = end - start;
        const double beside_program = std::max(periods[i], period_during_program(sensors_[i]->info()));
        const double wanted = beside ? beside_program : periods[i];
        due[i] = std::max(start + wanted, end + std::min(used, 0.01));
        if (beside) beside_ = beside_ + used;
      }
      next = std::min(next, due[i]);
    }
    std::unique_lock lock(pace_);
    const auto rest = std::chrono::duration<double>(std::clamp(next - host_seconds(), 0.0, 3600.0));
    changed_.wait_for(lock, rest, [&] { return !active_ || program_runs_ != beside; });
    // All are due when the program ends, but not when it begins, since the program would wait.
    if (beside && !program_runs_) due.assign(due.size(), 0);
    if (!beside && program_runs_)
      for (std::size_t i = 0; i < due.size(); ++i)
        due[i] = host_seconds() + std::max(periods[i], period_during_program(sensors_[i]->info()));
    beside = program_runs_;
    active = active_;
  }
  for (std::size_t i = 0; i < sensors_.size(); ++i) read(i);
}

void SensorRecorder::set_program_runs(bool runs) {
  {
    const std::lock_guard lock(pace_);
    program_runs_ = runs;
  }
  changed_.notify_all();
}

void SensorRecorder::begin(double period) {
  begin([=](const SensorInfo&) { return period; });
}

void SensorRecorder::begin(const std::function<double(const SensorInfo&)>& period) {
  end();
  std::vector<double> periods;
  {
    const std::lock_guard lock(mutex_);
    traces_.clear();
    costs_.assign(sensors_.size(), 0);
    begun_ = host_seconds();
    for (const auto& sensor : sensors_) {
      periods.push_back(period(sensor->info()));
      sensor->restart();
      traces_.push_back({sensor->info(), {}, {}});
    }
  }
  beside_ = 0;
  if (sensors_.empty()) return;
  active_ = true;
  program_runs_ = false;
  thread_ = std::thread([this, periods] { loop(periods); });
}

void SensorRecorder::wait(double after, double patience) const {
  double margin = 0;
  for (const auto& sensor : sensors_) margin = std::max(margin, reading_margin(sensor->info()));
  const double begin = host_seconds();
  const auto has_said = [&] {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(traces_, [&](const SensorTrace& trace) {
      const auto& readings = trace.readings;
      return !trace.failure.empty() ||
             (readings.size() >= 2 && readings.back().time > after + reading_margin(trace.info) - 2e-3);
    });
  };
  while (!has_said() && host_seconds() - begin < margin + patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<SensorTrace> SensorRecorder::traces(double from) const {
  const std::lock_guard lock(mutex_);
  std::vector<SensorTrace> out;
  for (const SensorTrace& trace : traces_) {
    const auto first = std::lower_bound(trace.readings.begin(), trace.readings.end(), from,
                                        [](const Reading& reading, double time) { return reading.time < time; });
    out.push_back({trace.info, {first, trace.readings.end()}, trace.failure});
  }
  return out;
}

std::vector<double> SensorRecorder::shares_reading() const {
  const std::lock_guard lock(mutex_);
  std::vector<double> shares;
  const double elapsed = host_seconds() - begun_;
  for (const double cost : costs_) shares.push_back(elapsed > 0 ? cost / elapsed : 0);
  return shares;
}

void SensorRecorder::end() {
  {
    const std::lock_guard lock(pace_);
    active_ = false;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace ergotune
