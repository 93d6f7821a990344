#include "store/formats/distinct_values.hpp"

#include <algorithm>

namespace ergotune {

const std::uint32_t* DistinctValues::positions(const Configuration& configuration) {
  by_value_.resize(lists_.size());
  for (std::size_t p = 0; p < lists_.size(); ++p) {
    const auto [found, added] = by_value_[p].emplace(configuration[p], static_cast<std::uint32_t>(lists_[p].size()));
    if (added) lists_[p].push_back(configuration[p]);
    positions_[p] = found->second;
  }
  return positions_.data();
}

void DistinctValues::finish(Recording& recording) const {
  const std::size_t dimensions = lists_.size();
  for (std::size_t p = 0; p < dimensions; ++p) {
    auto& values = recording.parameters[p].values;
    const auto known = static_cast<std::ptrdiff_t>(values.size());
    for (const Value& value : lists_[p]) {
      if (std::find(values.begin(), values.begin() + known, value) == values.begin() + known) values.push_back(value);
    }
    std::sort(values.begin() + known, values.end());
    std::vector<std::uint32_t> position;
    for (const Value& value : lists_[p]) {
      position.push_back(static_cast<std::uint32_t>(std::find(values.begin(), values.end(), value) - values.begin()));
    }
    for (std::size_t row = 0; row < recording.size(); ++row) {
      std::uint32_t& at = recording.positions[row * dimensions + p];
      at = position[at];
    }
  }
}

}  // namespace ergotune
