#include "measure/span_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "ergotune/base/clock.hpp"
#include "measure/energy_plausible.hpp"
#include "measure/energy_series.hpp"

namespace ergotune {
namespace {

/// Power as a function of time, from what a sensor's readings speak of.
class PowerOverTime {
 public:
  PowerOverTime(const std::vector<PowerOver>& series, bool steps) : series_(series), steps_(steps) {}

  double begin() const { return steps_ ? series_.front().from : series_.front().middle(); }
  double end() const { return steps_ ? series_.back().to : series_.back().middle(); }

  /// J between two times; beyond the ends the outermost power holds.
  double integral(double from, double to) const {
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

  const std::vector<PowerOver>& series_;
  bool steps_;
};

double edge_width(const SensorInfo& info) { return std::max(info.update_period, info.window); }

std::vector<SpanEnergy> none(std::size_t count, const std::string& why) {
  return std::vector<SpanEnergy>(count, SpanEnergy{why});
}

}  // namespace

double reading_margin(const SensorInfo& info) {
  return info.lag + 0.5 * info.window + 2.2 * info.update_period + 1e-3;
}

double shortest_span(const SensorInfo& info) { return std::max(10 * info.update_period, 3 * info.window); }

std::vector<SpanEnergy> energy_over(const SensorTrace& whole, const std::vector<TimeSpan>& spans) {
  SensorTrace trace = whole;
  if (std::string why = drop_implausible(trace); !why.empty()) return none(spans.size(), why);
  const bool counter = trace.info.kind == SensorKind::cumulative_energy;
  std::string trouble;
  if (counter) (void)counter_ticks(trace.readings, trace.info.update_period, trouble);
  constexpr double kAll = std::numeric_limits<double>::infinity();
  const std::vector<PowerOver> series = power_series(trace, {-kAll, kAll}, {});
  if (trouble.empty() && series.empty()) trouble = "no reading came";
  if (!trouble.empty()) return none(spans.size(), whole.failure.empty() ? trouble : whole.failure);
  const PowerOverTime power(series, counter);
  std::vector<SpanEnergy> energies;
  for (const TimeSpan& span : spans) {
    SpanEnergy energy;
    // A little may be missing at the ends; the rest is not guessed.
    const double missing = std::max(0.0, power.begin() - span.from) + std::max(0.0, span.to - power.end());
    if (missing > std::max(0.1 * span.length(), 1.1 * edge_width(trace.info))) {
      energy.why_not = whole.failure.empty() ? fmt::format("its readings leave out {:.2g} s of {:.2g} s", missing, span.length())
                                             : whole.failure;
    } else {
      energy.joules = power.integral(span.from, span.to);
      const double watts = energy.joules / span.length();
      if (std::string why = why_implausible(trace.info, watts); !why.empty()) {
        energy.why_not = why;
      } else if (!(energy.joules > 0)) {
        energy.why_not = "it reads no power at all";
      }
      // A uniform error of one width at each of both ends.
      energy.edge_error = watts * edge_width(trace.info) / std::sqrt(6.0);
    }
    energies.push_back(std::move(energy));
  }
  return energies;
}

void SensorRecorder::read_all() {
  for (std::size_t i = 0; i < sensors_.size(); ++i) {
    std::vector<Reading> fresh;
    const ReadStatus status = sensors_[i]->read(fresh);
    const std::lock_guard lock(mutex_);
    SensorTrace& trace = traces_[i];
    trace.readings.insert(trace.readings.end(), fresh.begin(), fresh.end());
    if (status == ReadStatus::failed || status == ReadStatus::not_supported) trace.failure = sensors_[i]->last_error();
  }
}

void SensorRecorder::begin(double period) {
  end();
  {
    const std::lock_guard lock(mutex_);
    traces_.clear();
    for (const auto& sensor : sensors_) {
      sensor->restart();
      traces_.push_back({sensor->info(), {}, {}});
    }
  }
  if (sensors_.empty()) return;
  active_ = true;
  thread_ = std::thread([this, period] {
    while (active_) {
      const double start = host_seconds();
      read_all();
      // Readings at least as far apart as they cost: reading must not load the machine that is measured.
      const double used = host_seconds() - start;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::max(period - used, std::min(used, 0.01))));
    }
    read_all();
  });
}

void SensorRecorder::wait(double after, double patience) const {
  double margin = 0;
  for (const auto& sensor : sensors_) margin = std::max(margin, reading_margin(sensor->info()));
  const double begin = host_seconds();
  const auto has_said = [&] {
    const std::lock_guard lock(mutex_);
    return std::all_of(traces_.begin(), traces_.end(), [&](const SensorTrace& trace) {
      const auto& readings = trace.readings;
      return !trace.failure.empty() || (readings.size() >= 2 && readings.back().time > after + reading_margin(trace.info) - 2e-3);
    });
  };
  while (!has_said() && host_seconds() - begin < margin + patience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<SensorTrace> SensorRecorder::traces() const {
  const std::lock_guard lock(mutex_);
  return traces_;
}

void SensorRecorder::end() {
  active_ = false;
  if (thread_.joinable()) thread_.join();
}

}  // namespace ergotune
