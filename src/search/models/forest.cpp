#include "search/models/forest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ergotune::search {

RandomForest::RandomForest(const SearchSpace& space, Options options)
    : space_(space), options_(options), features_(make_features(space)) {}

void RandomForest::encode(ConfigurationIndex index, float* out) const {
  std::vector<std::uint32_t> positions(space_.dimensions());
  space_.values_at(index, positions);
  for (const Feature& feature : features_) *out++ = feature.at(positions.data());
}

void RandomForest::fit(const std::vector<float>& rows, const std::vector<double>& values, Random& random) {
  nodes_.clear();
  roots_.clear();
  std::vector<std::size_t> items(values.size());
  for (std::size_t t = 0; t < options_.trees; ++t) {
    std::iota(items.begin(), items.end(), std::size_t{0});
    roots_.push_back(grow(items, 0, items.size(), rows, values, random));
  }
}

std::int32_t RandomForest::grow(std::vector<std::size_t>& items, std::size_t from, std::size_t to,
                                const std::vector<float>& rows, const std::vector<double>& values, Random& random) {
  const std::size_t count = to - from, width = features_.size();
  double sum = 0, squares = 0;
  for (std::size_t i = from; i < to; ++i) {
    sum += values[items[i]];
    squares += values[items[i]] * values[items[i]];
  }
  const double mean = sum / static_cast<double>(count);
  const double variance = std::max(0.0, squares / static_cast<double>(count) - mean * mean);
  const auto self = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({-1, 0, 0, 0, static_cast<float>(mean), static_cast<float>(variance)});
  if (count < 2 * options_.smallest_leaf || variance <= 1e-14 || width == 0) return self;

  double best_gain = 0;
  std::size_t best_feature = 0;
  float best_cut = 0;
  for (std::size_t attempt = 0; attempt < options_.cuts_tried; ++attempt) {
    const std::size_t f = random.below(width);
    float low = rows[items[from] * width + f], high = low;
    for (std::size_t i = from; i < to; ++i) {
      const float x = rows[items[i] * width + f];
      low = std::min(low, x);
      high = std::max(high, x);
    }
    if (!(high > low)) continue;
    const float cut = low + static_cast<float>(random.uniform()) * (high - low);
    double left_sum = 0;
    std::size_t left = 0;
    for (std::size_t i = from; i < to; ++i) {
      if (rows[items[i] * width + f] > cut) continue;
      left_sum += values[items[i]];
      ++left;
    }
    const std::size_t right = count - left;
    if (left < 1 || right < 1) continue;
    const double l = static_cast<double>(left), r = static_cast<double>(right);
    const double difference = left_sum / l - (sum - left_sum) / r;
    const double gain = l * r / static_cast<double>(count) * difference * difference;
    if (gain > best_gain) {
      best_gain = gain;
      best_feature = f;
      best_cut = cut;
    }
  }
  if (best_gain <= 0) return self;
  const auto middle =
      std::partition(items.begin() + static_cast<std::ptrdiff_t>(from), items.begin() + static_cast<std::ptrdiff_t>(to),
                     [&](std::size_t item) { return rows[item * width + best_feature] <= best_cut; });
  const auto split = static_cast<std::size_t>(middle - items.begin());
  const std::int32_t left = grow(items, from, split, rows, values, random);
  const std::int32_t right = grow(items, split, to, rows, values, random);
  Node& node = nodes_[static_cast<std::size_t>(self)];
  node.feature = static_cast<std::int32_t>(best_feature);
  node.cut = best_cut;
  node.left = left;
  node.right = right;
  return self;
}

void RandomForest::predict(const float* row, double& mean, double& deviation) const {
  double sum = 0, squares = 0, within = 0;
  for (const std::int32_t root : roots_) {
    const Node* node = &nodes_[static_cast<std::size_t>(root)];
    while (node->feature >= 0)
      node = &nodes_[static_cast<std::size_t>(row[node->feature] <= node->cut ? node->left : node->right)];
    sum += node->value;
    squares += static_cast<double>(node->value) * node->value;
    within += node->variance;
  }
  const double n = static_cast<double>(std::max<std::size_t>(1, roots_.size()));
  mean = sum / n;
  deviation = std::sqrt(std::max(0.0, squares / n - mean * mean) + within / n);
}

}  // namespace ergotune::search
