// Statistics as pure functions of data, independent of what was measured.
#pragma once

#include <cstddef>
#include <span>

namespace ergotune {

/// Mean, sample standard deviation (n-1) and count, updated one value at a time (Welford).
class RunningStatistics {
 public:
  void add(double x);
  std::size_t count() const { return count_; }
  double mean() const { return mean_; }
  /// Sample variance; 0 for fewer than two values.
  double variance() const { return count_ > 1 ? sum_squares_ / static_cast<double>(count_ - 1) : 0.0; }
  double standard_error() const;

 private:
  std::size_t count_ = 0;
  double mean_ = 0, sum_squares_ = 0;
};

double mean(std::span<const double> x);
/// Sample variance (n-1); 0 for fewer than two values.
double variance(std::span<const double> x);
/// q-quantile, 0 <= q <= 1, linear between order statistics (type 7). Throws std::invalid_argument when x is empty.
double quantile(std::span<const double> x, double q);
double median(std::span<const double> x);
/// Pearson correlation; 0 when either side does not vary.
double correlation(std::span<const double> x, std::span<const double> y);

/// Inverse of the standard normal distribution.
double normal_quantile(double p);
/// Standard normal distribution function.
double normal_cdf(double z);
/// Inverse of Student's t distribution with `degrees` > 0 degrees of freedom (real-valued).
double student_t_quantile(double p, double degrees);
/// Probability that an F distribution with `numerator` and `denominator` degrees of freedom exceeds `f`.
double f_tail(double f, double numerator, double denominator);
/// Half-width of the 95 % confidence interval of a value with this standard error: from Student's t distribution with
/// `degrees` degrees of freedom, or from the normal distribution if `degrees` is 0 (the error is known rather than
/// estimated from a small sample).
double half_width_95(double standard_error, double degrees);

/// Half-width, relative to the value, of the interval of a / b and of b / a for two independent means above zero with
/// half-widths `of_a` and `of_b`: the delta method, with half-widths in the place of standard errors, which keeps the
/// degrees of freedom of each side (Zou and Donner, Statistics in Medicine 27, 2008). 0, unknown, if a half-width is 0,
/// not finite, or not below its mean.
double ratio_half_width(double a, double of_a, double b, double of_b);

/// A standard error with its degrees of freedom (0: known exactly, as for half_width_95()).
struct ErrorEstimate {
  double standard_error = 0, degrees = 0;
};
/// The standard error of a sum of independent terms, with effective degrees of freedom (Welch, Biometrika 34, 1947).
ErrorEstimate combined_error(std::span<const ErrorEstimate> terms);

/// Straight line y = intercept + slope * x by weighted least squares, with the standard errors of both.
struct LineFit {
  double intercept = 0, slope = 0;
  double intercept_error = 0, slope_error = 0;
  double residual_deviation = 0;
  std::size_t count = 0;
};
/// An empty `weights` means equal weights. With fewer than two points with different x, all fields are 0.
LineFit fit_line(std::span<const double> x, std::span<const double> y, std::span<const double> weights = {});

}  // namespace ergotune
