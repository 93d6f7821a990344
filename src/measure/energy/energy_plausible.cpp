#include "measure/energy/energy_plausible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "measure/energy/energy_series.hpp"

namespace ergotune {

std::string why_implausible(const SensorInfo& info, double watts) {
  if (!std::isfinite(watts)) return "it reads no number";
  if (info.most_power > 0 && watts > info.most_power)
    return fmt::format("it reads {:.4g} W, far above any limit of its device", watts);
  if (info.min_power > 0 && watts < info.min_power)
    return fmt::format("it reads {:.3g} W, less than any device in operation draws", watts);
  return {};
}

namespace {

std::string why_implausible(const SensorInfo& info, const Reading& reading) {
  if (!std::isfinite(reading.time) || !std::isfinite(reading.value)) return "it reads no number";
  return info.kind == SensorKind::cumulative_energy ? std::string() : why_implausible(info, reading.value);
}

}  // namespace

bool plausible(const SensorTrace& trace) {
  return std::ranges::all_of(trace.readings,
                             [&](const Reading& reading) { return why_implausible(trace.info, reading).empty(); });
}

std::string drop_implausible(SensorTrace& trace) {
  const std::size_t before = trace.readings.size();
  std::string why;
  std::erase_if(trace.readings, [&](const Reading& reading) {
    std::string one = why_implausible(trace.info, reading);
    if (one.empty()) return false;
    why = std::move(one);
    return true;
  });
  return 10 * (before - trace.readings.size()) > before ? why : std::string();
}

double calibration_error(const SensorInfo& info, double watts) {
  if (!(watts > 0)) return 0;
  return std::hypot(info.level_error, info.gain_error * (watts - info.level)) / watts;
}

// On average over seconds, a GPU keeps its limit to about this relative deviation (0.1-0.2 % seen on an H100).
constexpr double kLimitDeviation = 0.002;

std::optional<double> enforced_power_limit(const EnergyTrace& trace, TimeSpan span) {
  std::optional<double> limit;
  for (const auto& [when, state] : trace.gpu)
    if (when >= span.from && when <= span.to && state.power_limit_w) limit = state.power_limit_w;
  return limit && *limit > 0 ? limit : std::nullopt;
}

std::optional<double> binding_power_limit(const EnergyTrace& trace, TimeSpan span) {
  int states = 0, capped = 0;
  std::optional<double> limit;  // in the last state read
  for (const auto& [when, state] : trace.gpu) {
    if (when < span.from || when > span.to) continue;
    ++states;
    const auto& reasons = state.clock_reasons;
    const bool binds = std::ranges::find(reasons, "power_cap") != reasons.end();
    limit = binds ? state.power_limit_w : std::nullopt;
    capped += limit.has_value();
  }
  // After a kernel with higher power, the throttle reason remains set for some tenths of a second: it must be set at
  // the end.
  return limit && *limit > 0 && 2 * capped >= states ? limit : std::nullopt;
}

std::optional<CappedEstimate> estimate_capped(const SensorTrace& sensor, TimeSpan span, const LaunchAxis& axis,
                                              double limit_watts) {
  constexpr double kElasticity = 2.5, kElasticityDeviation = 1;
  // Amplitude of an oscillation over its standard deviation: 1.41 for a sine.
  constexpr double kPeak = 1.5;
  std::vector<double> x, y;  // ln of the launch rate, ln of power over the limit
  for (const PowerOver& reading : power_series(sensor, span, axis.pauses())) {
    const double launches = axis.launches_at(reading.to) - axis.launches_at(reading.from);
    if (!(launches > 0) || !(reading.watts > 0)) continue;
    x.push_back(std::log(launches / (reading.to - reading.from)));
    y.push_back(std::log(reading.watts / limit_watts));
  }
  const std::size_t n = x.size();
  if (n < 4) return std::nullopt;
  const double x_mean = mean(x), y_mean = mean(y);
  if (std::abs(y_mean) > 0.1) return std::nullopt;  // further from the limit than any oscillation
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
  }
  // The prior of the elasticity is weighted by the scatter, which depends on the fitted line: iterate.
  double elasticity = kElasticity, scatter = 0.03 * 0.03, weight = 0;
  for (int round = 0; round < 8; ++round) {
    const double prior = scatter / (kElasticityDeviation * kElasticityDeviation);
    weight = xx + prior;
    elasticity = std::max(0.5, (xy + prior * kElasticity) / weight);
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double residual = y[i] - y_mean - elasticity * (x[i] - x_mean);
      squares += residual * residual;
    }
    scatter = std::max(squares / static_cast<double>(n - 2), 1e-8);
  }
  // If the power does not swing up to the limit, the GPU has settled: it stays below its limit (dead band of a
  // controller, clocks in steps), or its throttle reason is stuck. No GPU settles above its limit.
  const double swing = xx > 0 ? std::abs(xy) / std::sqrt(xx * static_cast<double>(n)) : 0;
  if (y_mean < -(kLimitDeviation + kPeak * swing)) return std::nullopt;
  // The line reaches the limit (y = 0) at x = x_mean - y_mean / e.
  const double log_rate = x_mean - y_mean / elasticity;
  const double line = scatter / static_cast<double>(n) / (elasticity * elasticity);
  const double slope = y_mean * y_mean * (scatter / weight) / std::pow(elasticity, 4);
  CappedEstimate out;
  out.seconds = std::exp(-log_rate);
  out.energy = limit_watts * out.seconds;
  out.relative_error = std::sqrt(line + slope + kLimitDeviation * kLimitDeviation);
  out.degrees = static_cast<double>(n - 2);
  out.elasticity = elasticity;
  out.n = static_cast<std::int64_t>(n);
  out.sensor = sensor.info.id;
  return out;
}

std::optional<LongRun> estimate_long_run(const SlopeEstimate& watts, double seconds_per_launch, double limit_watts) {
  // Higher powers are of more than the GPU that the limit is for. While it oscillates, an H200 keeps its limit to about
  // 0.5 % over 4 s.
  constexpr double kLeast = 0.01, kMost = 0.25, kSlowdown = 0.5, kDeviation = 0.005;
  const double above = watts.value / limit_watts - 1;
  if (!watts.valid || watts.scope != SensorScope::gpu || above < kLeast || above > kMost) return std::nullopt;
  const double logarithm = std::log1p(above);
  return LongRun{limit_watts * seconds_per_launch * std::exp(0.5 * kSlowdown * logarithm),
                 std::hypot(kSlowdown * logarithm / std::sqrt(12.0), kDeviation)};
}

}  // namespace ergotune
