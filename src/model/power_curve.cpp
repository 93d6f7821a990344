#include <algorithm>
#include <cmath>

#include "model/power_model.hpp"

namespace ergotune {

double PowerCurve::voltage(double clock_mhz) const {
  return 1.0 + voltage_slope_per_mhz * std::max(0.0, clock_mhz - ridge_mhz);
}

double PowerCurve::power(double clock_mhz) const {
  const double v = voltage(clock_mhz);
  return std::min(max_power_w, idle_w + dynamic_w_per_mhz * clock_mhz * v * v);
}

double PowerCurve::energy_per_megacycle(double clock_mhz) const { return power(clock_mhz) / clock_mhz; }

double PowerCurve::throttle_clock() const {
  if (!std::isfinite(max_power_w)) return std::numeric_limits<double>::infinity();
  if (dynamic_w_per_mhz <= 0) return std::numeric_limits<double>::infinity();
  PowerCurve uncapped = *this;
  uncapped.max_power_w = std::numeric_limits<double>::infinity();
  double low = 0, high = std::max(ridge_mhz, 1.0);
  while (uncapped.power(high) < max_power_w && high < 1e6) high *= 2;
  if (high >= 1e6) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (uncapped.power(middle) < max_power_w ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double PowerCurve::optimal_clock(double low_mhz, double high_mhz) const {
  const double top = std::clamp(throttle_clock(), low_mhz, high_mhz);
  if (voltage_slope_per_mhz <= 0 || dynamic_w_per_mhz <= 0) return idle_w > 0 ? top : low_mhz;
  // d/df (P/f) = (2 a b v f^2 - P_idle) / f^2 above the ridge, growing with f; below the ridge it is negative.
  const auto slope = [&](double f) {
    return 2 * dynamic_w_per_mhz * voltage_slope_per_mhz * voltage(f) * f * f - idle_w;
  };
  double low = std::max(low_mhz, ridge_mhz);
  if (low >= top) return top;
  if (slope(low) >= 0) return low;
  double high = top;
  if (slope(high) <= 0) return high;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (slope(middle) < 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

ClockRange suggested_range(const PowerModel& model, double share, std::span<const double> clocks) {
  ClockRange range;
  const double optimum = model.optimal_clock_mhz.value;
  range.low_mhz = std::max((1 - share) * optimum, model.low_mhz);
  range.high_mhz = std::min((1 + share) * optimum, model.high_mhz);
  if (!clocks.empty()) {
    double low = 0, high = 0, nearest = clocks[0];
    std::size_t inside = 0;
    for (const double clock : clocks) {
      if (std::abs(clock - optimum) < std::abs(nearest - optimum)) nearest = clock;
      if (clock < range.low_mhz - 1e-6 || clock > range.high_mhz + 1e-6) continue;
      low = inside == 0 ? clock : std::min(low, clock);
      high = inside == 0 ? clock : std::max(high, clock);
      ++inside;
    }
    if (inside == 0) {
      low = high = nearest;
      inside = 1;
    }
    range = {low, high, 1.0 - static_cast<double>(inside) / static_cast<double>(clocks.size())};
  } else if (model.high_mhz > model.low_mhz) {
    range.removed_share = 1.0 - (range.high_mhz - range.low_mhz) / (model.high_mhz - model.low_mhz);
  }
  return range;
}

std::optional<double> best_clock(const PowerModel& model, std::span<const double> clocks) {
  std::optional<double> best;
  const double ceiling = std::min(model.curve.throttle_clock(), model.high_mhz) + 1e-6;
  for (const double clock : clocks) {
    if (clock > ceiling && best) continue;
    if (!best || model.curve.energy_per_megacycle(clock) < model.curve.energy_per_megacycle(*best)) best = clock;
  }
  return best;
}

std::optional<double> next_clock(const PowerModel& model, std::span<const PowerSample> samples,
                                 std::span<const double> candidates) {
  std::optional<double> best;
  double largest = -1;
  for (const double clock : candidates) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const PowerSample& s : samples) nearest = std::min(nearest, std::abs(s.clock_mhz - clock));
    if (nearest < 1e-6) continue;
    // Without a usable model, the largest gap decides.
    const double error = model.usable ? model.relative_error(clock) : nearest;
    if (error > largest) {
      largest = error;
      best = clock;
    }
  }
  return best;
}

std::vector<double> spaced_clocks(std::span<const double> candidates, std::size_t count) {
  std::vector<double> sorted(candidates.begin(), candidates.end());
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (sorted.size() <= count || count < 2) return sorted;
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    // Spaced evenly by clock, not by position: the supported clocks of some GPUs are spaced unevenly.
    const double wanted =
        sorted.front() + (sorted.back() - sorted.front()) * static_cast<double>(i) / static_cast<double>(count - 1);
    const double nearest = *std::ranges::min_element(
        sorted, [&](double a, double b) { return std::abs(a - wanted) < std::abs(b - wanted); });
    if (out.empty() || nearest > out.back()) out.push_back(nearest);
  }
  return out;
}

}  // namespace ergotune
