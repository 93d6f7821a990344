#include "measure/energy/energy_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"

namespace ergotune {

std::vector<CounterTick> counter_ticks(const std::vector<Reading>& readings, double update_period,
                                       std::string& failure) {
  std::vector<CounterTick> ticks;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const Reading &before = readings[i - 1], &now = readings[i];
    if (now.value < before.value) {
      failure = "the counter went back (it wrapped, or the driver restarted)";
      return {};
    }
    if (now.value == before.value) continue;
    // The tick lies after the last poll that did not show it, and at most one update period before this one.
    double width = now.time - before.time;
    if (update_period > 0) width = std::min(width, update_period);
    ticks.push_back({now.time - width / 2, width, now.value});
  }
  if (ticks.size() < 2) {
    failure = readings.empty() ? "no reading came" : "the counter did not move";
    return {};
  }
  const double usual = (ticks.back().time - ticks.front().time) / static_cast<double>(ticks.size() - 1);
  const double still = readings.back().time - ticks.back().time;
  if (still > 10 * std::max(usual, update_period) && still > 0.5) {
    failure = fmt::format("the counter stopped {:.1f} s before the end", still);
    return {};
  }
  return ticks;
}

std::vector<Reading> power_updates(const std::vector<Reading>& readings, double update_period) {
  std::vector<Reading> updates;
  double last_edge = 0, last_poll = 0;
  for (const auto& reading : readings) {
    const double gap = reading.time - last_poll;
    if (updates.empty()) {
      updates.push_back(reading);
      last_edge = reading.time;
    } else if (update_period <= 0 || gap > 0.5 * update_period) {
      // Polled more slowly than it updates (or time-stamped by the sensor): every reading is an update.
      updates.push_back(reading);
      last_edge = reading.time;
    } else if (reading.value != updates.back().value) {
      last_edge = reading.time - gap / 2;
      updates.push_back({last_edge, reading.value});
    } else if (reading.time - last_edge > 1.5 * update_period) {
      // An update with an unchanged value.
      last_edge += update_period;
      updates.push_back({last_edge, reading.value});
    }
    last_poll = reading.time;
  }
  // The time of the first value is unknown; if it was polled, it is not an update.
  if (updates.size() > 1 && readings.size() > 2 * updates.size()) updates.erase(updates.begin());
  return updates;
}

std::vector<PowerOver> power_series(const SensorTrace& trace, TimeSpan span, const std::vector<TimeSpan>& pauses) {
  const SensorInfo& info = trace.info;
  std::vector<PowerOver> series;
  if (info.kind == SensorKind::cumulative_energy) {
    std::string failure;
    const auto ticks = counter_ticks(trace.readings, info.update_period, failure);
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      const double seconds = ticks[i].time - ticks[i - 1].time;
      if (seconds > 0)
        series.push_back({ticks[i - 1].time - info.lag, ticks[i].time - info.lag,
                          (ticks[i].value - ticks[i - 1].value) / seconds + info.offset});
    }
  } else {
    auto updates = power_updates(trace.readings, info.update_period);
    if (info.kind == SensorKind::exponential_power) updates = undo_exponential_lag(updates, info.window);
    const double window = info.kind == SensorKind::windowed_power ? info.window : 0;
    const double width = window > 0 ? window : std::max(info.update_period, 1e-6);
    for (const auto& update : updates) {
      const double to = window > 0 ? update.time - info.lag : update.time - info.lag + width / 2;
      series.push_back({to - width, to, update.value});
    }
  }
  std::erase_if(series, [&](const PowerOver& p) {
    return p.from < span.from - 1e-9 || p.to > span.to + 1e-9 || touches(pauses, p.from, p.to);
  });
  return series;
}

bool touches(const std::vector<TimeSpan>& pauses, double from, double to) {
  return std::ranges::any_of(pauses, [&](const TimeSpan& p) { return p.from < to && p.to > from; });
}

SeriesMean batch_mean(std::span<const double> values) {
  SeriesMean out;
  const std::size_t n = values.size();
  if (n < 2) return {n == 1 ? values[0] : 0.0, INFINITY, 0};
  out.mean = mean(values);
  const std::size_t batches = std::min<std::size_t>(n, 20);
  std::vector<double> means(batches);
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t from = b * n / batches, to = (b + 1) * n / batches;
    means[b] = mean(values.subspan(from, to - from));
  }
  double inflate = 1;
  if (batches >= 4) {
    const double center = mean(means);
    double lag0 = 0, lag1 = 0;
    for (std::size_t b = 0; b < batches; ++b) lag0 += (means[b] - center) * (means[b] - center);
    for (std::size_t b = 1; b < batches; ++b) lag1 += (means[b] - center) * (means[b - 1] - center);
    // The sample correlation is too low by about 1/n; only a correlation above its own noise widens the interval.
    const double count = static_cast<double>(batches);
    const double rho = lag0 > 0 ? lag1 / lag0 + 1 / count : 0;
    if (rho > 1 / std::sqrt(count)) {
      const double bounded = std::min(rho, 0.8);
      inflate = (1 + bounded) / (1 - bounded);
    }
  }
  out.standard_error = std::sqrt(variance(means) / static_cast<double>(batches) * inflate);
  out.degrees = static_cast<double>(batches - 1);
  return out;
}

SeriesMean overlapping_mean(std::span<const double> values, double window, double period) {
  SeriesMean out;
  const std::size_t n = values.size();
  out.mean = mean(values);
  if (n < 3) return {out.mean, INFINITY, 0};
  // R_k - R_k-1 = (P_new - P_old) * period / window, with P over one period each.
  double squares = 0;
  for (std::size_t i = 1; i < n; ++i) squares += (values[i] - values[i - 1]) * (values[i] - values[i - 1]);
  const double ratio = window / period;
  const double per_period = squares / static_cast<double>(n - 1) * ratio * ratio / 2;
  // Number of windows that contain each period: a trapezoid over n - 1 + ratio periods.
  const double periods = static_cast<double>(n - 1) + ratio;
  const double top = std::min(static_cast<double>(n), ratio), ramp = std::max(top - 1, 0.0);
  // Sum of squared weights of a trapezoid of height `top` with ramps: top^2 (periods - 2 ramp) + 2/3 top^2
  // ramp, over the square of its area.
  const double area = static_cast<double>(n) * ratio;
  const double weights = (top * top * (periods - 2 * ramp) + 2.0 / 3.0 * top * top * ramp) / (area * area);
  out.standard_error = std::sqrt(per_period * weights);
  out.degrees = std::max(1.0, static_cast<double>(n - 1) / 1.5);
  return out;
}

double significant_drift(std::span<const double> times, std::span<const double> relative) {
  if (times.size() < 6) return 0;
  const LineFit fit = fit_line(times, relative);
  if (std::abs(fit.slope) < 3 * fit.slope_error) return 0;
  return fit.slope * (times.back() - times.front());
}

}  // namespace ergotune
