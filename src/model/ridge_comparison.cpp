// Compares the ridge point from voltages alone with that from powers alone.
#include <algorithm>
#include <vector>

#include "base/statistics.hpp"
#include "model/power_model.hpp"

namespace ergotune {
namespace {

/// Number of steps in the search for the voltage's ridge.
constexpr int kGrid = 400;
/// Smallest relative error of a voltage reading: readings come in steps of some millivolts.
constexpr double kVoltageError = 0.003;

struct CurveKnee {
  double cost = 0, slope = 0;
};

/// Fits v0 (1 + b max(0, f - ridge)) for a given ridge, by relative residuals.
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
  const auto best =
      std::ranges::min_element(tried, [](const auto& a, const auto& b) { return a.second.cost < b.second.cost; });
  const double degrees = std::max(1.0, static_cast<double>(f.size()) - 3);
  const double variance = std::max(best->second.cost / degrees, kVoltageError * kVoltageError);
  const double t = student_t_quantile(0.975, degrees);
  // A constant voltage has no ridge.
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

RidgeComparison compare_ridges(std::span<const PowerSample> samples) {
  RidgeComparison out;
  out.from_voltage = ridge_from_voltage(samples);
  std::vector<PowerSample> powers(samples.begin(), samples.end());
  for (PowerSample& s : powers) s.voltage_v.reset();
  if (const PowerModel model = fit_power_model(powers); model.found) out.from_power = model.ridge_mhz;
  return out;
}

}  // namespace ergotune
