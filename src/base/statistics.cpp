#include "base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

namespace ergotune {

void RunningStatistics::add(double x) {
  ++count_;
  const double delta = x - mean_;
  mean_ += delta / static_cast<double>(count_);
  sum_squares_ += delta * (x - mean_);
}

double RunningStatistics::standard_deviation() const { return std::sqrt(variance()); }

double RunningStatistics::standard_error() const {
  return count_ > 1 ? std::sqrt(variance() / static_cast<double>(count_)) : 0.0;
}

double RunningStatistics::relative_half_width(double confidence) const {
  if (count_ < 2 || mean_ == 0) return std::numeric_limits<double>::infinity();
  const double t = student_t_quantile(0.5 + confidence / 2, static_cast<double>(count_ - 1));
  return t * standard_error() / std::abs(mean_);
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
  std::sort(sorted.begin(), sorted.end());
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

double normal_quantile(double p) {
  // Rational start (Acklam, 2003; relative error 1.15e-9), then one Halley step to full precision.
  static constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                 1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                                 6.680131188771972e+01, -1.328068155288572e+01};
  static constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                 -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                 3.754408661907416e+00};
  if (p <= 0) return -std::numeric_limits<double>::infinity();
  if (p >= 1) return std::numeric_limits<double>::infinity();
  double x;
  if (p < 0.02425 || p > 1 - 0.02425) {
    const double q = std::sqrt(-2 * std::log(p < 0.5 ? p : 1 - p));
    x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
        ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    if (p > 0.5) x = -x;
  } else {
    const double q = p - 0.5, r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double e = normal_cdf(x) - p;
  const double u = e * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
  return x - u / (1 + x * u / 2);
}

namespace {
// Regularised incomplete beta function by its continued fraction (Lentz's method).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  constexpr double tiny = 1e-300;
  double f = 1, c = 1, d = 0;
  for (int i = 0; i <= 500; ++i) {
    const int m = i / 2;
    double numerator = 1;
    if (i > 0) {
      numerator = i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                             : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    }
    d = 1 + numerator * d;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = 1 + numerator / c;
    if (std::abs(c) < tiny) c = tiny;
    f *= c * d;
    if (std::abs(1 - c * d) < 1e-14) break;
  }
  return front * (f - 1);
}

double student_t_cdf(double t, double degrees) {
  const double tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  return t > 0 ? 1 - tail : tail;
}
}  // namespace

double student_t_quantile(double p, double degrees) {
  if (p == 0.5) return 0;
  if (degrees > 1e7) return normal_quantile(p);
  if (p < 0.5) return -student_t_quantile(1 - p, degrees);
  double low = 0, high = 2;
  while (student_t_cdf(high, degrees) < p && high < 1e12) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_t_cdf(middle, degrees) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double half_width_95(double standard_error, double degrees) {
  static thread_local std::map<double, double> known;  // a quantile is found by bisection, the same few over and over
  if (known.size() > 1000) known.clear();
  const auto [factor, fresh] = known.try_emplace(degrees, 0.0);
  if (fresh) factor->second = degrees > 0 ? student_t_quantile(0.975, degrees) : normal_quantile(0.975);
  return factor->second * standard_error;
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
