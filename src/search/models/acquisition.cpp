#include "search/models/acquisition.hpp"

#include <cmath>
#include <numbers>

#include "base/statistics.hpp"

namespace ergotune::search {

double expected_improvement(double gain, double deviation) {
  if (!(deviation > 0)) return gain > 0 ? gain : 0.0;
  const double z = gain / deviation;
  if (z < -8) return 0;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  return gain * normal_cdf(z) + deviation * density;
}

double log_expected_improvement(double gain, double deviation) {
  constexpr double kNever = -1e300;
  if (!(deviation > 0)) return gain > 0 ? std::log(gain) : kNever;
  const double z = gain / deviation;
  if (z > -5) return std::log(expected_improvement(gain, deviation));
  // density(z) / z^2 (1 - 3 / z^2): the asymptotic series of Mills' ratio, less its first term
  return std::log(deviation) - 0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) - 2 * std::log(-z) +
         std::log1p(-3 / (z * z));
}

double least_deviations(double wanted, double largest) {
  // the improvement over the deviation rises with the gain over the deviation
  const double relative = wanted - std::log(largest);
  double low = -1e6, high = 1e6;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (log_expected_improvement(middle, 1) < relative ? low : high) = middle;
  }
  return low - 1e-6 * (1 + std::abs(low));
}

}  // namespace ergotune::search
