// What random search reaches on a space, and how long a strategy may take: steps 2 to 5 of the community's
// method (Willemsen et al., "A methodology for comparing optimization algorithms for auto-tuning", 2024).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ergotune::search {

struct ScoreBaseline {
  /// Valid values, largest first.
  std::vector<double> descending;
  double optimum = 0, median = 0;
  /// Random draws after which p = 0.95 of the way from the median to the optimum is expected.
  std::size_t draws_to_cutoff = 0;
  double median_seconds = 0;  ///< of an evaluation, failed ones included
  double budget = 0;          ///< s that a run may take
  std::vector<double> times;  ///< kScorePoints equidistant points
  std::vector<double> curve;  ///< expected best of random search at `times`

  /// The position in `descending` of a value in it (of the last of several equal ones).
  std::size_t rank(double value) const;
};

inline constexpr std::size_t kScorePoints = 1000;

/// m(p): expected number of random draws until the cut-off f* + (median - f*)(1 - p) is reached.
std::size_t draws_to_cutoff(std::span<const double> descending, double p);
/// Expected best of k draws without replacement, by position in the sorted values.
double expected_best(std::span<const double> descending, std::size_t k);

/// `values` of the valid configurations; `valid_seconds` and `failed_seconds` what each evaluation costs.
/// Throws Error when there is no valid value.
ScoreBaseline make_baseline(std::span<const double> values, std::span<const double> valid_seconds,
                            std::span<const double> failed_seconds);

}  // namespace ergotune::search
