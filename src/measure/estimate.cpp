#include "measure/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "ergotune/base/statistics.hpp"

namespace ergotune {
namespace {

double t_quantile(std::size_t degrees) {
  static thread_local std::map<std::size_t, double> known;
  if (degrees > 400) return 1.966;
  auto [entry, fresh] = known.try_emplace(degrees, 0.0);
  if (fresh) entry->second = student_t_quantile(0.975, static_cast<double>(degrees));
  return entry->second;
}

}  // namespace

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
    // 1.65 / sqrt(n): what chance alone exceeds in one case of twenty.
    if (r > 1.65 / std::sqrt(static_cast<double>(n))) {
      const double bounded = std::min(r, 0.9);
      result.standard_error *= std::sqrt((1 + bounded) / (1 - bounded));
    }
  }
  if (result.value > 0)
    result.relative_half_width = t_quantile(kept - 1) * result.standard_error / result.value;
  return result;
}

}  // namespace ergotune
