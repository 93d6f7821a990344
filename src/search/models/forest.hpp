// Extremely randomised regression trees (Geurts, Ernst and Wehenkel, 2006) over the features of a search
// space: mean and spread of the trees' predictions.
#pragma once

#include <cstdint>
#include <vector>

#include "search/models/encoding.hpp"

namespace ergotune::search {

class RandomForest {
 public:
  struct Options {
    std::size_t trees = 60;
    std::size_t smallest_leaf = 2;
    std::size_t cuts_tried = 6;  ///< random cuts tried per node
  };
  RandomForest(const SearchSpace& space, Options options);

  std::size_t features() const { return features_.size(); }
  void encode(ConfigurationIndex index, float* out) const;
  /// Rows of features() numbers each.
  void fit(const std::vector<float>& rows, const std::vector<double>& values, Random& random);
  void predict(const float* row, double& mean, double& deviation) const;

 private:
  struct Node {
    std::int32_t feature = -1;  ///< -1: a leaf
    float cut = 0;
    std::int32_t left = 0, right = 0;
    float value = 0, variance = 0;
  };
  std::int32_t grow(std::vector<std::size_t>& items, std::size_t from, std::size_t to, const std::vector<float>& rows,
                    const std::vector<double>& values, Random& random);

  const SearchSpace& space_;
  Options options_;
  std::vector<Feature> features_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> roots_;
};

}  // namespace ergotune::search
