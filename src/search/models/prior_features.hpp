// What earlier searches say of a configuration, as something that a model can learn from.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "ergotune/strategy.hpp"
#include "search/models/gaussian_process.hpp"

namespace ergotune::search {

/// Each earlier search (another device, problem size, driver or source) becomes a feature of the configurations: how
/// far in front it saw them, on a logarithmic scale of ranks. What that means here the model learns as of any other
/// feature, so a search that says nothing of this one is soon passed over, and one whose order is another still helps
/// where the two go together in any way. Its results also say beforehand how far each parameter's effect reaches. One
/// whose results do not even foretell each other is left out.
class PriorFeatures {
 public:
  PriorFeatures(const SearchSpace& space, const std::vector<PriorResults>& priors);
  bool empty() const { return sources_.empty(); }
  /// Gives a model that has observed nothing yet the features, and what the earlier results say of its scales. It asks
  /// this object as long as it lives.
  void teach(GaussianProcess& model) const;
  /// Works out the features of these where an earlier search did not try them.
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
