// How promising a candidate is.
#pragma once

#include <vector>

#include "search/strategy_base.hpp"

namespace ergotune::search {

/// E[max(0, gain)] for a normal gain of this mean and standard deviation (Jones, Schonlau and Welch, 1998).
double expected_improvement(double gain, double deviation);

/// Its logarithm, which still tells candidates apart where the improvement itself is too small for a number.
double log_expected_improvement(double gain, double deviation);

/// Gains below this many standard deviations, of which none is larger than `largest`, have no log_expected_improvement
/// as large as `wanted`: it distinguishes most candidates without the improvement itself.
double least_deviations(double wanted, double largest);

class Candidates {
 public:
  Candidates(const SearchSpace& space, std::size_t limit) : space_(space), limit_(limit) {}

  /// True when every configuration is a candidate, so that drawing again brings nothing new.
  bool whole() const { return space_.size() <= limit_; }
  /// At most about `limit` of them, known ones left out unless the whole space is a candidate: the neighbours
  /// of the incumbents (best first) and of what else is promising, steps of several parameters from the
  /// incumbents, their crossings, and a sample of everything.
  std::vector<ConfigurationIndex> draw(const EvaluationCache& memory, const std::vector<ConfigurationIndex>& incumbents,
                                       const std::vector<ConfigurationIndex>& promising, Random& random,
                                       std::size_t limit) const;
  std::size_t limit() const { return limit_; }

 private:
  const SearchSpace& space_;
  std::size_t limit_;
};

}  // namespace ergotune::search
