// Features for a model from the results of earlier searches.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "ergotune/strategy.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune::search {

/// Each earlier search (on another device, with another problem size, driver or source) becomes a feature of the
/// configurations: their rank in that search, on a logarithmic scale. The model learns the feature's influence like
/// that of any other: an unrelated search is soon ignored, and any relation between the two searches helps, not only an
/// equal order. Its results also give priors for the length scale of each parameter. A search whose results do not
/// predict each other is left out.
class PriorFeatures {
 public:
  PriorFeatures(const SearchSpace& space, const std::vector<PriorResults>& priors);
  bool empty() const { return sources_.empty(); }
  /// Adds the features to a model without observations, with priors for its scales. The model uses this object during
  /// its lifetime.
  void teach(GaussianProcess& model) const;
  /// Computes the features of configurations that an earlier search did not evaluate.
  void expect(const std::vector<ConfigurationIndex>& places);

 private:
  struct Source {
    explicit Source(const SearchSpace& space) : model(space) {}
    std::unordered_map<ConfigurationIndex, float> level;  ///< 1 for its best, 0 from its median on
    std::vector<double> values;                           ///< ascending, as the model has them
    GaussianProcess model;                                ///< of some of its results
  };
  void add(const PriorResults& prior);
  static float level_at(std::size_t rank, std::size_t count);

  const SearchSpace& space_;
  std::deque<Source> sources_;  ///< stay where they are
};

}  // namespace ergotune::search
