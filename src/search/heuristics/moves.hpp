// Steps in a space that never leave it, whatever its restrictions.
#pragma once

#include <span>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::search {

class Moves {
 public:
  explicit Moves(const SearchSpace& space);

  /// A random configuration that differs in one parameter; `index` itself when it has no such neighbour.
  ConfigurationIndex random_neighbour(ConfigurationIndex index, Random& random);
  /// The same with the value next to its own.
  ConfigurationIndex random_adjacent(ConfigurationIndex index, Random& random);
  /// `steps` random neighbours one after the other.
  ConfigurationIndex perturbed(ConfigurationIndex index, std::size_t steps, Random& random);
  /// The configuration at a target in value positions where that is valid; otherwise as far from `from`
  /// towards it as changing one parameter at a time (in random order) gets.
  ConfigurationIndex towards(ConfigurationIndex from, std::span<const std::uint32_t> target, Random& random);
  /// The same for a real-valued point, rounded and held to the values there are.
  ConfigurationIndex towards(ConfigurationIndex from, std::span<const double> point, Random& random);

  /// Value positions of a configuration; valid until the next call.
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
