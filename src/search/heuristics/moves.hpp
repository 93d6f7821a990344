// Moves between configurations that stay within a space with any restrictions.
#pragma once

#include <span>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

class Moves {
 public:
  explicit Moves(const SearchSpace& space);

  /// A random configuration that differs in one parameter; `index` if it has no such neighbour.
  ConfigurationIndex random_neighbour(ConfigurationIndex index, Random& random);
  /// The same, with an adjacent value of that parameter.
  ConfigurationIndex random_adjacent(ConfigurationIndex index, Random& random);
  /// Makes `steps` moves to random neighbours.
  ConfigurationIndex perturbed(ConfigurationIndex index, std::size_t steps, Random& random);
  /// The configuration at target value positions, if it is valid; else the configuration reached from `from` by setting
  /// one parameter after the other, in random order, to its target where that is valid.
  ConfigurationIndex towards(ConfigurationIndex from, std::span<const std::uint32_t> target, Random& random);
  /// The same for a real-valued point, rounded and clamped to the existing positions.
  ConfigurationIndex towards(ConfigurationIndex from, std::span<const double> point, Random& random);

  /// Value positions of a configuration; the span is valid until the next call.
  std::span<const std::uint32_t> positions(ConfigurationIndex index);
  std::vector<double> point(ConfigurationIndex index);
  std::size_t dimensions() const { return counts_.size(); }
  std::uint32_t count(std::size_t parameter) const { return counts_[parameter]; }
  /// Parameters with more than one value.
  const std::vector<std::size_t>& free() const { return free_; }

 private:
  const SearchSpace& space_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::size_t> free_;
  std::vector<std::uint32_t> here_, there_;
  std::vector<std::size_t> order_;
  std::vector<ConfigurationIndex> list_;
};

}  // namespace ergotune::search
