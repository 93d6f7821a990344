// Which configurations work, as far as the outcomes tell.
#pragma once

#include <unordered_set>
#include <vector>

#include "search/models/gaussian_process.hpp"

namespace ergotune::search {

/// The probability that a configuration does not fail: a Gaussian process over 0 (worked) and 1 (failed), whose excess
/// over a half counts in its standard deviations. As a factor of the expected improvement it is that of a search under
/// constraints that are not known (Gelbart, Snoek and Adams, UAI 2014). Costs nothing while nothing has failed.
class Feasibility {
 public:
  explicit Feasibility(const SearchSpace& space) : model_(space) {}

  void observe(ConfigurationIndex index, bool ok);
  /// The candidates that probabilities are wanted for.
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
