// Predicts which configurations work, from the outcomes so far.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "search/models/gaussian_process.hpp"

namespace ergotune::search {

/// The probability that a configuration does not fail. As a factor of the expected improvement it gives a search under
/// unknown constraints (Gelbart, Snoek and Adams, UAI 2014). Two Gaussian processes: over the logarithm of what a block
/// needs of the device (Outcome::block_need), whose prediction has to be below that of 1, or of the most that has
/// worked, and over 0 (worked) and 1 (failed for another reason), whose prediction has to be below one half. The latter
/// costs nothing until the first such failure.
class Feasibility {
 public:
  explicit Feasibility(const SearchSpace& space) : need_(space), failed_(space) {}

  /// `block_need`: as in Outcome.
  void observe(ConfigurationIndex index, bool ok, double block_need);
  /// Sets the candidates for which probabilities are predicted.
  void set_pool(const std::vector<ConfigurationIndex>& pool);
  /// Logarithms of the probabilities, over the pool.
  void predict(std::vector<float>& log_probability);

 private:
  /// A quantity that is learned over the same candidates.
  struct Learned {
    explicit Learned(const SearchSpace& space) : model(space) {}
    void observe(ConfigurationIndex index, double value);
    /// Adds the logarithm of the probability that it is below `limit`, which is known to +- `doubt`.
    void add_below(double limit, double doubt, const std::vector<ConfigurationIndex>& pool,
                   std::vector<float>& log_probability);
    GaussianProcess model;
    std::vector<ConfigurationIndex> observed;
    std::vector<double> values;
    std::size_t next_fit = 0;
    bool drawn = false;  ///< the model has the pool
  };

  Learned need_, failed_;
  std::unordered_set<ConfigurationIndex> known_;
  std::vector<ConfigurationIndex> pool_;
  std::size_t failures_ = 0;  ///< for another reason than block_need
  double largest_ = 0;        ///< block_need
  double limit_ = 1;          ///< of block_need: some devices allow more than they report
  std::vector<std::pair<ConfigurationIndex, double>> refused_;  ///< failed, with a block_need above limit_
};

}  // namespace ergotune::search
