#include "measure/timing/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/statistics.hpp"

namespace ergotune {
TimeEstimate estimate_time(std::span<const double> samples) {
  TimeEstimate result;
  const std::size_t n = samples.size();
  result.count = n;
  result.relative_half_width = std::numeric_limits<double>::infinity();
  if (n == 0) return result;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = n / 5;
  const std::size_t kept = n - 2 * cut;
  result.value = mean(std::span(sorted).subspan(cut, kept));
  if (n < 2) return result;

  std::vector<double> winsorised(samples.begin(), samples.end());
  const double low = sorted[cut], high = sorted[n - 1 - cut];
  for (double& x : winsorised) x = std::clamp(x, low, high);
  const double spread = variance(winsorised);
  const double share = static_cast<double>(kept) / static_cast<double>(n);
  result.standard_error = std::sqrt(spread / static_cast<double>(n)) / share;
  if (n >= 10) {
    const double r = correlation(winsorised, std::span(winsorised).subspan(1));
    // 1.65 / sqrt(n): exceeded by chance in one case of twenty.
    if (r > 1.65 / std::sqrt(static_cast<double>(n))) {
      const double bounded = std::min(r, 0.9);
      result.standard_error *= std::sqrt((1 + bounded) / (1 - bounded));
    }
  }
  result.degrees = static_cast<double>(kept - 1);
  if (result.value > 0)
    result.relative_half_width = half_width_95(result.standard_error, result.degrees) / result.value;
  return result;
}

bool has_outlier(std::span<const double> samples) {
  if (samples.size() < 3 || samples.size() > 4) return false;
  const double centre = median(samples);
  std::vector<double> distances;
  for (const double sample : samples) distances.push_back(std::abs(sample - centre));
  std::sort(distances.begin(), distances.end());
  return distances.back() > std::max(0.1 * std::abs(centre), 5 * distances[distances.size() - 2]);
}

}  // namespace ergotune
