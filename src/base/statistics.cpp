#include "base/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <stdexcept>

namespace ergotune {

void RunningStatistics::add(double x) {
  ++count_;
  const double delta = x - mean_;
  mean_ += delta / static_cast<double>(count_);
  sum_squares_ += delta * (x - mean_);
}

double RunningStatistics::standard_error() const {
  return count_ > 1 ? std::sqrt(variance() / static_cast<double>(count_)) : 0.0;
}

double mean(std::span<const double> x) {
  double sum = 0;
  for (double v : x) sum += v;
  return x.empty() ? 0.0 : sum / static_cast<double>(x.size());
}

double variance(std::span<const double> x) {
  if (x.size() < 2) return 0;
  const double m = mean(x);
  double sum = 0;
  for (double v : x) sum += (v - m) * (v - m);
  return sum / static_cast<double>(x.size() - 1);
}

double quantile(std::span<const double> x, double q) {
  if (x.empty()) throw std::invalid_argument("quantile of no values");
  std::vector<double> sorted(x.begin(), x.end());
  std::ranges::sort(sorted);
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const auto high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double median(std::span<const double> x) { return quantile(x, 0.5); }

double correlation(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = std::min(x.size(), y.size());
  const double mx = mean(x.first(n)), my = mean(y.first(n));
  double sxx = 0, syy = 0, sxy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sxx += (x[i] - mx) * (x[i] - mx);
    syy += (y[i] - my) * (y[i] - my);
    sxy += (x[i] - mx) * (y[i] - my);
  }
  return sxx > 0 && syy > 0 ? sxy / std::sqrt(sxx * syy) : 0.0;
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

namespace {
// no long double and no exceptions: the quantiles of 0 and 1 are infinite
namespace policies = boost::math::policies;
using Policy = policies::policy<policies::promote_double<false>, policies::domain_error<policies::ignore_error>,
                                policies::overflow_error<policies::ignore_error>,
                                policies::evaluation_error<policies::ignore_error>>;
}  // namespace

double normal_quantile(double p) {
  return boost::math::quantile(boost::math::normal_distribution<double, Policy>(), p);
}

double student_t_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::students_t_distribution<double, Policy>(degrees), p);
}

double f_tail(double f, double numerator, double denominator) {
  return boost::math::ibeta(denominator / 2, numerator / 2, denominator / (denominator + numerator * std::max(0.0, f)),
                            Policy());
}

double half_width_95(double standard_error, double degrees) {
  // A search asks for each configuration what the interval of its best is, and Student's quantile takes microseconds.
  thread_local double known = 0, quantile = normal_quantile(0.975);
  if (const double wanted = degrees > 0 ? degrees : 0; wanted != known) {
    quantile = wanted > 0 ? student_t_quantile(0.975, wanted) : normal_quantile(0.975);
    known = wanted;
  }
  return quantile * standard_error;
}

double ratio_half_width(double a, double of_a, double b, double of_b) {
  if (!(of_a > 0 && of_a < a && of_b > 0 && of_b < b)) return 0;
  return std::hypot(of_a / a, of_b / b);
}

ErrorEstimate combined_error(std::span<const ErrorEstimate> terms) {
  double variance = 0, squares = 0;
  for (const auto& [error, degrees] : terms) {
    variance += error * error;
    if (degrees > 0) squares += error * error * error * error / degrees;
  }
  return {std::sqrt(variance), squares > 0 ? variance * variance / squares : 0};
}

LineFit fit_line(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
  LineFit fit;
  const std::size_t n = std::min(x.size(), y.size());
  fit.count = n;
  auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  double sw = 0, sx = 0, sy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sw += weight(i);
    sx += weight(i) * x[i];
    sy += weight(i) * y[i];
  }
  if (n < 2 || sw <= 0) return fit;
  const double mx = sx / sw, my = sy / sw;
  double sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sxx += weight(i) * (x[i] - mx) * (x[i] - mx);
    sxy += weight(i) * (x[i] - mx) * (y[i] - my);
  }
  if (sxx <= 0) return fit;
  fit.slope = sxy / sxx;
  fit.intercept = my - fit.slope * mx;
  if (n > 2) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double r = y[i] - fit.intercept - fit.slope * x[i];
      squares += weight(i) * r * r;
    }
    const double s2 = squares / static_cast<double>(n - 2);
    fit.residual_deviation = std::sqrt(s2);
    fit.slope_error = std::sqrt(s2 / sxx);
    fit.intercept_error = std::sqrt(s2 * (1 / sw + mx * mx / sxx));
  }
  return fit;
}

}  // namespace ergotune
