// Slope of a sensor's energy over time or launches, by kind of sensor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "measure/energy/energy.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/energy/energy_series.hpp"

namespace ergotune {

double SlopeEstimate::half_width() const {
  if (!valid || degrees <= 0) return INFINITY;
  return half_width_95(standard_error, degrees);
}

std::vector<Reading> undo_exponential_lag(const std::vector<Reading>& readings, double constant) {
  std::vector<Reading> power;
  for (std::size_t i = 1; i + 1 < readings.size(); ++i) {
    const double dt = readings[i + 1].time - readings[i - 1].time;
    if (dt <= 0) continue;
    power.push_back(
        {readings[i].time, readings[i].value + constant * (readings[i + 1].value - readings[i - 1].value) / dt});
  }
  return power;
}

namespace {

SlopeEstimate invalid(const SensorTrace& trace, std::string why) {
  SlopeEstimate estimate;
  estimate.sensor = trace.info.id;
  estimate.why_not = fmt::format("{}: {}", trace.info.id, why);
  return estimate;
}

/// An increment of a counter between the edges of two ticks.
struct Increment {
  double joules, units, seconds, middle;
  double edge_before, edge_after;  ///< variance, J^2
  bool linked;                     ///< shares its first tick with the previous increment
};

/// Merges many short increments into about twenty long ones, between which correlated power looks independent.
std::vector<Increment> merged(const std::vector<Increment>& fine) {
  constexpr std::size_t kWanted = 20;
  const std::size_t each = fine.size() / kWanted;
  if (each < 2) return fine;
  std::vector<Increment> coarse;
  std::size_t parts = 0;
  for (const Increment& next : fine) {
    if (parts == each || !next.linked) {  // the first one never is
      coarse.push_back(next);
      parts = 1;
      continue;
    }
    Increment& sum = coarse.back();
    sum.middle = (sum.middle * sum.seconds + next.middle * next.seconds) / (sum.seconds + next.seconds);
    sum.joules += next.joules;
    sum.units += next.units;
    sum.seconds += next.seconds;
    sum.edge_after = next.edge_after;
    ++parts;
  }
  return coarse;
}

/// Slope of joules over units for increments with edge noise of known size and a random walk of unknown size. The
/// walk's variance is integrated out: restricted likelihood with a flat prior on its standard deviation. With few
/// increments, the single most likely value would too often be zero, and the interval far too short.
struct WalkFit {
  double slope = 0, half_width = INFINITY;
};
struct WalkPoint {
  double slope, variance, log_likelihood;
};

WalkPoint fit_at(const std::vector<Increment>& increments, double walk) {
  // Neighbours share an edge, so the covariance is tridiagonal: C x = units and C y = joules, solved together (Thomas).
  const std::size_t n = increments.size();
  std::vector<double> diagonal(n), off(n, 0.0), u(n), d(n);
  double log_determinant = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Increment& increment = increments[i];
    diagonal[i] = walk * increment.seconds + increment.edge_before + increment.edge_after;
    u[i] = increment.units;
    d[i] = increment.joules;
    if (i > 0) {
      off[i] = increment.linked ? -increment.edge_before : 0.0;
      const double factor = off[i] / diagonal[i - 1];
      diagonal[i] -= factor * off[i];
      u[i] -= factor * u[i - 1];
      d[i] -= factor * d[i - 1];
    }
    log_determinant += std::log(diagonal[i]);
  }
  double uu = 0, ud = 0, dd = 0;
  for (std::size_t i = n; i-- > 0;) {
    if (i + 1 < n) {
      u[i] -= off[i + 1] * u[i + 1];
      d[i] -= off[i + 1] * d[i + 1];
    }
    u[i] /= diagonal[i];
    d[i] /= diagonal[i];
    uu += increments[i].units * u[i];
    ud += increments[i].units * d[i];
    dd += increments[i].joules * d[i];
  }
  return {ud / uu, 1 / uu, -0.5 * (log_determinant + std::log(uu) + (dd - ud * ud / uu))};
}

WalkFit fit_with_walk(const std::vector<Increment>& increments, double rough) {
  double scatter = 0, seconds = 0, joules = 0;
  for (const auto& increment : increments) {
    const double residual = increment.joules - rough * increment.units;
    scatter += residual * residual;
    seconds += increment.seconds;
    joules += increment.joules;
  }
  // Grid of standard deviations of the walk (J per square root of a second), up to several times what the scatter can
  // explain, and at least 0.01 % of the power over a second.
  const double least = 1e-4 * joules / seconds;
  const double most = std::max(4 * std::sqrt(scatter / seconds), 10 * least);
  constexpr int kGrid = 48;
  std::vector<WalkPoint> points;
  double best = -INFINITY;
  for (int g = 0; g < kGrid; ++g) {
    const double deviation = least + (most - least) * (g + 0.5) / kGrid;
    points.push_back(fit_at(increments, deviation * deviation));
    best = std::max(best, points.back().log_likelihood);
  }
  double total = 0, slope = 0;
  for (auto& point : points) {
    point.log_likelihood = std::exp(point.log_likelihood - best);  // now a weight
    total += point.log_likelihood;
    slope += point.log_likelihood * point.slope;
  }
  slope /= total;
  // Half-width that contains 95 % of the mixture.
  double low = 0, high = 0;
  for (const auto& point : points)
    high = std::max(high, 10 * std::sqrt(point.variance) + std::abs(point.slope - slope));
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    double inside = 0;
    for (const auto& point : points) {
      const double deviation = std::sqrt(point.variance);
      inside += point.log_likelihood * (normal_cdf((slope + middle - point.slope) / deviation) -
                                        normal_cdf((slope - middle - point.slope) / deviation));
    }
    (inside / total < 0.95 ? low : high) = middle;
  }
  return {slope, high};
}

SlopeEstimate counter_slope(const SensorTrace& trace, TimeSpan span, const EnergyAxis& axis,
                            const std::vector<TimeSpan>& pauses) {
  const SensorInfo& info = trace.info;
  std::string failure;
  const auto ticks = counter_ticks(trace.readings, info.update_period, failure);
  if (!failure.empty()) return invalid(trace, failure);
  // At each tick, a sleeping counter (window > 0) refers to the last window only; the lag applies to both kinds.
  std::vector<Increment> increments;
  TimeSpan covered{INFINITY, -INFINITY};
  double joules = 0, units = 0, seconds = 0;
  bool linked = false;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const CounterTick &before = ticks[i - 1], &tick = ticks[i];
    const double from = before.time - info.lag, to = tick.time - info.lag;
    if (from < span.from || to > span.to || touches(pauses, from, to)) {
      linked = false;
      continue;
    }
    increments.push_back({tick.value - before.value + info.offset * (to - from), axis(to) - axis(from), to - from,
                          0.5 * (from + to), before.uncertainty, tick.uncertainty, linked});
    linked = true;
    joules += increments.back().joules;
    units += increments.back().units;
    seconds += to - from;
    covered.from = std::min(covered.from, from);
    covered.to = to;
  }
  increments = merged(increments);
  const std::size_t n = increments.size();
  if (n < 3) return invalid(trace, fmt::format("only {} counter increments in {:.2f} s", n, span.length()));
  if (!(joules > 0)) return invalid(trace, "the counter counted nothing");
  if (!(units > 0)) return invalid(trace, "no launch completed");
  const double watts = joules / seconds;
  for (const auto& increment : increments)
    if (const auto why = why_implausible(info, increment.joules / increment.seconds); !why.empty())
      return invalid(trace, why);

  // Edge noise: a tick is observed late by up to its uncertainty (uniform), and counts whole steps.
  for (auto& increment : increments) {
    for (double* edge : {&increment.edge_before, &increment.edge_after}) {
      const double late = watts * *edge;
      *edge = (late * late + info.unit_step * info.unit_step) / 12;
    }
  }
  const WalkFit fit = fit_with_walk(increments, joules / units);
  SlopeEstimate estimate;
  estimate.valid = true;
  estimate.value = fit.slope;
  estimate.standard_error = fit.half_width / normal_quantile(0.975);
  estimate.degrees = 1e9;  // the half-width already accounts for the number of increments
  estimate.n = static_cast<std::int64_t>(n);
  estimate.covered = covered;
  estimate.method = "counter regression";
  estimate.sensor = info.id;
  std::vector<double> relative(n), middle(n);
  for (std::size_t i = 0; i < n; ++i) {
    relative[i] = increments[i].units > 0 ? increments[i].joules / increments[i].units / estimate.value : 1.0;
    middle[i] = increments[i].middle;
  }
  estimate.drift = significant_drift(middle, relative);
  if (!(estimate.value > 0) || !std::isfinite(estimate.standard_error)) return invalid(trace, "no positive slope");
  return estimate;
}

/// The longest run of equal values. Readings of real power do not stay equal to the last digit for long.
class ConstantRun {
 public:
  void see(const PowerOver& reading) {
    if (reading.watts != watts_) {
      count_ = 0;
      from_ = reading.middle();
      watts_ = reading.watts;
    }
    ++count_;
    if (count_ < longest_) return;
    longest_ = count_;
    seconds_ = reading.middle() - from_;
    longest_watts_ = watts_;
  }
  /// True for a suspicious run among `n` readings. A sensor that is polled faster than it updates repeats each value a
  /// few times.
  bool found(std::size_t n) const { return (longest_ == n && n >= 5) || (longest_ >= 8 && seconds_ >= 0.6); }
  double watts() const { return longest_watts_; }

 private:
  std::size_t count_ = 0, longest_ = 0;
  double watts_ = NAN, from_ = NAN, seconds_ = NAN, longest_watts_ = NAN;
};

SlopeEstimate power_slope(const SensorTrace& trace, TimeSpan span, const EnergyAxis& axis,
                          const std::vector<TimeSpan>& pauses) {
  const SensorInfo& info = trace.info;
  const double window = info.kind == SensorKind::windowed_power ? info.window : 0;
  // Each reading is converted to J per unit of the axis over the interval to which it refers.
  std::vector<double> ratio, times;
  TimeSpan covered{INFINITY, -INFINITY};
  double watts = 0;
  ConstantRun still;
  for (const PowerOver& reading : power_series(trace, span, pauses)) {
    const double units = axis(reading.to) - axis(reading.from);
    if (!(units > 0)) continue;
    still.see(reading);
    ratio.push_back(reading.watts * (reading.to - reading.from) / units);
    watts += reading.watts;
    times.push_back(reading.middle());
    covered.from = std::min(covered.from, reading.from);
    covered.to = std::max(covered.to, reading.to);
  }
  const std::size_t n = ratio.size();
  if (n < 3)
    return invalid(trace, fmt::format("only {} readings whose window lies in the {:.2f} s measured", n, span.length()));
  if (!(watts > 0)) return invalid(trace, "it reads no power");
  if (info.always_fluctuates && still.found(n))
    return invalid(trace, fmt::format("it stood still at {:.6g} W", still.watts()));
  SlopeEstimate estimate;
  estimate.sensor = info.id;
  estimate.method = info.kind == SensorKind::exponential_power ? "mean power, lag undone"
                    : window > 0                               ? "window mean"
                                                               : "mean power";
  estimate.n = static_cast<std::int64_t>(n);
  estimate.covered = covered;
  // The ratio of means, not the mean of ratios: launches and readings average out separately.
  const double units = axis(covered.to) - axis(covered.from);
  double busy = covered.length();
  for (const auto& p : pauses) busy -= std::max(0.0, std::min(p.to, covered.to) - std::max(p.from, covered.from));
  estimate.value = (watts / static_cast<double>(n)) * busy / units;
  SeriesMean mean;
  const double period = (times.back() - times.front()) / static_cast<double>(n - 1);
  if (window > 1.5 * period && period > 0) {
    mean = overlapping_mean(ratio, window, period);
  } else {
    mean = batch_mean(ratio);
  }
  estimate.standard_error =
      std::hypot(mean.standard_error, estimate.value * info.unit_step / (watts / static_cast<double>(n)) /
                                          std::sqrt(12.0 * static_cast<double>(n)));
  estimate.degrees = mean.degrees;
  for (double& r : ratio) r /= estimate.value;
  if (window <= 1.5 * period) estimate.drift = significant_drift(times, ratio);
  // If a sensor sleeps between its windows and a launch is not short compared with them, the sensor may always observe
  // the same part of the launch.
  if (window > 0 && window < 0.8 * period && n >= 4) {
    const double rate = units / covered.length();
    if (rate * window < 4) {
      double c = 0, s = 0;
      for (const double time : times) {
        const double phase = 2 * M_PI * axis(time);
        c += std::cos(phase);
        s += std::sin(phase);
      }
      if (std::hypot(c, s) / static_cast<double>(n) > 0.6)
        estimate.warnings.push_back(
            fmt::format("{} sleeps between its windows and sees the same part of every launch", info.id));
    }
  }
  estimate.valid = estimate.value > 0 && std::isfinite(estimate.standard_error);
  return estimate;
}

}  // namespace

SlopeEstimate estimate_slope(const SensorTrace& trace, TimeSpan span, const EnergyAxis& axis,
                             const std::vector<TimeSpan>& pauses) {
  if (!plausible(trace)) {
    SensorTrace cleaned = trace;
    if (const auto why = drop_implausible(cleaned); !why.empty()) return invalid(trace, why);
    return estimate_slope(cleaned, span, axis, pauses);
  }
  if (trace.readings.empty())
    return invalid(trace, trace.failure.empty() ? std::string("no reading came") : trace.failure);
  SlopeEstimate estimate = trace.info.kind == SensorKind::cumulative_energy ? counter_slope(trace, span, axis, pauses)
                                                                            : power_slope(trace, span, axis, pauses);
  estimate.repeatability = trace.info.repeatability;
  estimate.scope = trace.info.scope;
  estimate.metered = trace.info.gain != 1 || trace.info.offset != 0;
  if (estimate.valid) {
    const double units = axis(estimate.covered.to) - axis(estimate.covered.from);
    estimate.systematic = calibration_error(trace.info, estimate.value * units / estimate.covered.length());
  }
  if (!trace.failure.empty()) {
    if (!estimate.valid)
      estimate.why_not += "; " + trace.failure;
    else
      estimate.warnings.push_back(fmt::format("{} failed on the way: {}", trace.info.id, trace.failure));
  }
  return estimate;
}

}  // namespace ergotune
