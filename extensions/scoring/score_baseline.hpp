// The expected progress of random search on a space, and the budget of a strategy: steps 2 to 5 of the community's
// method (Willemsen et al., "A methodology for comparing optimization algorithms for auto-tuning", 2024).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ergotune::search {

/// Piecewise cubic Hermite interpolation that preserves monotonicity of the data (Fritsch and Butland 1984; weighted
/// harmonic mean of slopes, three-point formula at the ends). `x` must be strictly increasing; outside of it the end
/// values are used.
std::vector<double> pchip(std::span<const double> x, std::span<const double> y, std::span<const double> at);

/// Least-squares non-increasing fit of y over x (pool adjacent violators), evaluated at `at`: linear between
/// the fitted points, constant outside. Points with equal x are averaged first. No points: NaN everywhere.
std::vector<double> decreasing_fit(std::span<const double> x, std::span<const double> y, std::span<const double> at);

struct ScoreBaseline {
  /// Valid values, largest first.
  std::vector<double> descending;
  double optimum = 0, median = 0;
  /// Number of random draws expected to reach p = 0.95 of the way from the median to the optimum.
  std::size_t draws_to_cutoff = 0;
  double median_seconds = 0;  ///< of an evaluation, including failed ones
  double budget = 0;          ///< s for a run
  std::vector<double> times;  ///< kScorePoints equidistant points
  std::vector<double> curve;  ///< expected best of random search at `times`

  /// The position of a value in `descending`; of several equal values, the last.
  std::size_t rank(double value) const;
};

inline constexpr std::size_t kScorePoints = 1000;

/// m(p): expected number of random draws until the cut-off f* + (median - f*)(1 - p) is reached.
std::size_t draws_to_cutoff(std::span<const double> descending, double p);
/// Expected best of k draws without replacement, as a value of the sorted list.
double expected_best(std::span<const double> descending, std::size_t k);

/// `values`: of the valid configurations; `valid_seconds`, `failed_seconds`: cost of each evaluation. Throws Error if
/// there is no valid value.
ScoreBaseline make_baseline(std::span<const double> values, std::span<const double> valid_seconds,
                            std::span<const double> failed_seconds);

}  // namespace ergotune::search
