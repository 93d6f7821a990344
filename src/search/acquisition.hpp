// How promising a candidate is, and what earlier searches say about it.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "ergotune/search/strategy.hpp"

namespace ergotune::search {

/// E[max(0, gain)] for a normal gain of this mean and standard deviation (Jones, Schonlau and Welch, 1998).
double expected_improvement(double gain, double deviation);

/// Its logarithm, which still tells candidates apart where the improvement itself is too small for a number.
double log_expected_improvement(double gain, double deviation);

/// What an earlier search (another device, clock or problem size) expects of a configuration: a smooth of its
/// outcomes, centred and scaled to the logarithm of its values, as the mean that a model starts from.
class PriorMean {
 public:
  PriorMean(const SearchSpace& space, const std::vector<std::pair<ConfigurationIndex, Outcome>>& prior);
  bool empty() const { return known_.empty(); }
  /// 0 where the prior knows nothing.
  double mean(ConfigurationIndex index) const;
  /// How much of it holds here: least squares on what was observed, drawn to one while little is.
  double weight(std::span<const double> prior_means, std::span<const double> values) const;

 private:
  std::unordered_map<ConfigurationIndex, double> known_;
};

}  // namespace ergotune::search
