// What earlier searches say of a configuration, and how much of that holds here.
#pragma once

#include <unordered_map>
#include <vector>

#include "ergotune/search/strategy.hpp"
#include "search/gaussian_process.hpp"

namespace ergotune::search {

/// The mean that a model starts from: a weighted sum of what each earlier search (another device, problem size, driver or
/// source) expects, on the logarithm of its values, everything above its median counting alike. The weights follow from
/// what is observed here by generalised least squares under the model's own covariance (universal kriging), drawn to one
/// while little is known; and all of it is believed as far as it explains more than the model does alone, so that a prior
/// that misleads is soon forgotten.
class PriorMean {
 public:
  PriorMean(const SearchSpace& space, const std::vector<PriorResults>& priors);
  bool empty() const { return sources_.empty(); }
  /// Works out what is expected of these where an earlier search did not try them.
  void expect(const std::vector<ConfigurationIndex>& places);
  /// Learns the weights: `values` at `places`, in the order in which `model` observed them.
  void weigh(const GaussianProcess& model, const std::vector<ConfigurationIndex>& places,
             const std::vector<double>& values);
  /// 0 where nobody knows.
  double mean(ConfigurationIndex index) const;
  /// The configurations that the earlier searches together think best, best first.
  std::vector<ConfigurationIndex> best(std::size_t count) const;
  /// Probability that the earlier searches tell something about this one.
  double trust() const { return trust_; }

 private:
  struct Source {
    std::unordered_map<ConfigurationIndex, double> known;  ///< centred: 0 at its median and above
    std::vector<ConfigurationIndex> learnt;
    double spread = 0;  ///< mean square
    double weight = 0, start = 0;
  };
  void add(const PriorResults& prior);

  const SearchSpace& space_;
  std::vector<Source> sources_;
  double trust_ = 0;
};

}  // namespace ergotune::search
