#include "model/ridge_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/least_squares.hpp"
#include "base/statistics.hpp"

namespace ergotune {
namespace {

/// Steps in which a voltage's ridge is looked for.
constexpr int kGrid = 400;
/// No voltage reading is better than this, relatively: they come in steps of some millivolts.
constexpr double kVoltageError = 0.003;

PrintedModel printed(double ridge, const std::vector<double>& p) {
  PrintedModel model;
  model.ridge_mhz = ridge;
  model.idle_w = p[0];
  model.dynamic_w_per_mhz = p[1];
  model.voltage_slope_per_mhz = p[1] > 0 ? std::sqrt(p[2] / p[1]) : 0.0;
  return model;
}

/// The best idle power, a and a b^2 at a threshold: linear in all three, none negative.
LeastSquaresFit fit_at(double ridge, std::span<const PowerSample> samples) {
  double most = 0, top = 0;
  for (const PowerSample& s : samples) {
    most = std::max(most, s.power_w);
    top = std::max(top, s.clock_mhz);
  }
  LeastSquaresProblem problem;
  problem.parameters = {{"idle", 0, 2 * most}, {"a", 0, 4 * most / top}, {"ab2", 0, 100 * most / (top * top * top)}};
  problem.residual_count = samples.size();
  problem.residuals = [&](std::span<const double> p, std::span<double> out) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double f = samples[i].clock_mhz, above = f - ridge;
      const double power = p[0] + (above < 0 ? p[1] * f : p[2] * f * above * above);
      out[i] = power / samples[i].power_w - 1;
    }
  };
  problem.starts = {{0.2 * most, 0.5 * most / top, most / (top * top * top)}};
  return least_squares(problem, false);
}

struct CurveKnee {
  double cost = 0, slope = 0;
};

/// The line v0 (1 + b max(0, f - ridge)) at a ridge, by its relative residuals.
CurveKnee bend_at(double ridge, const std::vector<double>& f, const std::vector<double>& v) {
  std::vector<double> x;
  for (const double clock : f) x.push_back(std::max(0.0, clock - ridge));
  const LineFit line = fit_line(x, v);
  const bool flat = line.count == 0;
  const double level = flat ? mean(v) : line.intercept;
  CurveKnee bend{0, flat ? 0 : line.slope};
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double residual = (level + bend.slope * x[i]) / v[i] - 1;
    bend.cost += residual * residual;
  }
  return bend;
}

}  // namespace

double PrintedModel::power(double clock_mhz) const {
  const double v = clock_mhz < ridge_mhz ? 1.0 : voltage_slope_per_mhz * (clock_mhz - ridge_mhz);
  return idle_w + dynamic_w_per_mhz * clock_mhz * v * v;
}

std::optional<PrintedModel> fit_as_printed(std::span<const PowerSample> samples, std::span<const double> clocks) {
  std::set<double> sampled, thresholds(clocks.begin(), clocks.end());
  for (const PowerSample& s : samples) {
    if (!(s.clock_mhz > 0) || !(s.power_w > 0)) return std::nullopt;
    sampled.insert(s.clock_mhz);
  }
  if (sampled.size() < 5) return std::nullopt;
  if (thresholds.empty()) thresholds = sampled;
  std::optional<PrintedModel> best;
  double least = 0;
  // Two clocks below fix idle and dynamic power, one above the slope.
  const double first = *std::next(sampled.begin(), 2), last = *sampled.rbegin();
  for (const double ridge : thresholds) {
    if (ridge < first || ridge >= last) continue;
    const LeastSquaresFit fit = fit_at(ridge, samples);
    if (!fit.ok || (best && fit.cost >= least)) continue;
    least = fit.cost;
    best = printed(ridge, fit.parameters);
  }
  if (best) best->relative_deviation = std::sqrt(least / std::max(1.0, static_cast<double>(samples.size()) - 4));
  return best;
}

std::optional<Estimate> ridge_from_voltage(std::span<const PowerSample> samples) {
  std::vector<double> f, v;
  for (const PowerSample& s : samples) {
    if (!s.voltage_v || !(*s.voltage_v > 0)) continue;
    f.push_back(s.clock_mhz);
    v.push_back(*s.voltage_v);
  }
  if (f.size() < 4) return std::nullopt;
  const auto [low, high] = std::minmax_element(f.begin(), f.end());
  std::vector<std::pair<double, CurveKnee>> tried;
  for (int i = 0; i < kGrid; ++i) {
    const double ridge = *low + (*high - *low) * i / kGrid;
    tried.emplace_back(ridge, bend_at(ridge, f, v));
  }
  const auto best = std::min_element(tried.begin(), tried.end(),
                                     [](const auto& a, const auto& b) { return a.second.cost < b.second.cost; });
  const double degrees = std::max(1.0, static_cast<double>(f.size()) - 3);
  const double variance = std::max(best->second.cost / degrees, kVoltageError * kVoltageError);
  const double t = student_t_quantile(0.975, degrees);
  // A voltage that is the same everywhere has no ridge.
  const double flat = bend_at(*high, f, v).cost;
  if (best->second.slope <= 0 || flat - best->second.cost < variance * t * t) return std::nullopt;
  Estimate ridge{best->first, best->first, best->first};
  for (const auto& [at, bend] : tried) {
    if (bend.cost > best->second.cost + variance * t * t) continue;
    ridge.low = std::min(ridge.low, at);
    ridge.high = std::max(ridge.high, at);
  }
  return ridge;
}

RidgeComparison compare_ridges(std::span<const PowerSample> samples, std::span<const double> clocks) {
  RidgeComparison out;
  out.from_voltage = ridge_from_voltage(samples);
  std::vector<PowerSample> powers(samples.begin(), samples.end());
  for (PowerSample& s : powers) s.voltage_v.reset();
  if (const PowerModel model = fit_power_model(powers); model.found) out.from_power = model.ridge_mhz;
  out.as_printed = fit_as_printed(samples, clocks);
  return out;
}

}  // namespace ergotune
