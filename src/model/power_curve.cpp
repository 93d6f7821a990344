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
  // d/df (P/f) = (2 a b v f^2 - P_idle) / f^2 above the ridge, growing with f; below the ridge it is
  // negative.
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

}  // namespace ergotune
