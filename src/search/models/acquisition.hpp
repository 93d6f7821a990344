// Acquisition: how promising a candidate is, and which configurations are candidates.
#pragma once

#include <vector>

#include "search/strategy_base.hpp"

namespace ergotune::search {

/// E[max(0, gain)] for a normal gain of this mean and standard deviation (Jones, Schonlau and Welch, 1998).
double expected_improvement(double gain, double deviation);

/// ln of expected_improvement(), which still distinguishes candidates whose improvement underflows.
double log_expected_improvement(double gain, double deviation);

/// A lower limit on gain / deviation: below it, and with no deviation above `largest`, log_expected_improvement() is
/// below `wanted`. Excludes most candidates without computing their improvement.
double least_deviations(double wanted, double largest);

class Candidates {
 public:
  Candidates(const SearchSpace& space, std::size_t limit) : space_(space), limit_(limit) {}

  /// True when every configuration is a candidate, so that drawing again brings nothing new.
  bool whole() const { return space_.size() <= limit_; }
  /// Draws at most about `limit` candidates: neighbours of the incumbents (best first) and of `promising`, steps of
  /// several parameters from the incumbents, crossovers of them, and a sample of the whole space. Known configurations
  /// are left out unless the whole space is a candidate.
  std::vector<ConfigurationIndex> draw(const EvaluationCache& memory, const std::vector<ConfigurationIndex>& incumbents,
                                       const std::vector<ConfigurationIndex>& promising, Random& random,
                                       std::size_t limit) const;
  std::size_t limit() const { return limit_; }

 private:
  const SearchSpace& space_;
  std::size_t limit_;
};

}  // namespace ergotune::search
