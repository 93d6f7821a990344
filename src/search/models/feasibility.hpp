// Predicts which configurations work, from the outcomes so far.
#pragma once

#include <unordered_set>
#include <vector>

#include "search/models/gaussian_process.hpp"

namespace ergotune::search {

/// The probability that a configuration does not fail, from a Gaussian process over 0 (worked) and 1 (failed): the
/// probability that its prediction is below one half. As a factor of the expected improvement it gives a search under
/// unknown constraints (Gelbart, Snoek and Adams, UAI 2014). Costs nothing until the first failure.
class Feasibility {
 public:
  explicit Feasibility(const SearchSpace& space) : model_(space) {}

  void observe(ConfigurationIndex index, bool ok);
  /// Sets the candidates for which probabilities are predicted.
  void set_pool(const std::vector<ConfigurationIndex>& pool);
  /// Logarithms of the probabilities, over the pool.
  void predict(std::vector<float>& log_probability);

 private:
  GaussianProcess model_;
  std::vector<ConfigurationIndex> observed_;
  std::unordered_set<ConfigurationIndex> known_;
  std::vector<double> failed_;  ///< 1 or 0
  std::vector<ConfigurationIndex> pool_;
  std::size_t failures_ = 0, next_fit_ = 0;
  bool drawn_ = false;  ///< the model has the pool
};

}  // namespace ergotune::search
