#include "search/heuristics/moves.hpp"

#include <algorithm>
#include <cmath>

namespace ergotune::search {

Moves::Moves(const SearchSpace& space) : space_(space), here_(space.dimensions()), there_(space.dimensions()) {
  for (std::size_t p = 0; p < space.dimensions(); ++p) {
    counts_.push_back(static_cast<std::uint32_t>(space.parameters()[p].values.size()));
    if (counts_.back() > 1) free_.push_back(p);
  }
}

std::span<const std::uint32_t> Moves::positions(ConfigurationIndex index) {
  space_.values_at(index, here_);
  return here_;
}

std::vector<double> Moves::point(ConfigurationIndex index) {
  const auto at = positions(index);
  return {at.begin(), at.end()};
}

ConfigurationIndex Moves::random_neighbour(ConfigurationIndex index, Random& random) {
  if (free_.empty()) return index;
  space_.values_at(index, here_);
  // A few guesses are cheaper than the whole list, which is needed only among many restrictions.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::size_t p = free_[random.below(free_.size())];
    const std::uint32_t before = here_[p];
    here_[p] = static_cast<std::uint32_t>((before + 1 + random.below(counts_[p] - 1)) % counts_[p]);
    const auto found = space_.index_of(here_);
    here_[p] = before;
    if (found) return *found;
  }
  space_.neighbours(index, Neighbourhood::hamming, list_);
  return list_.empty() ? index : list_[random.below(list_.size())];
}

ConfigurationIndex Moves::random_adjacent(ConfigurationIndex index, Random& random) {
  if (free_.empty()) return index;
  space_.values_at(index, here_);
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::size_t p = free_[random.below(free_.size())];
    const std::uint32_t before = here_[p];
    const bool up = before == 0 || (before + 1 < counts_[p] && random.chance(0.5));
    here_[p] = up ? before + 1 : before - 1;
    const auto found = space_.index_of(here_);
    here_[p] = before;
    if (found) return *found;
  }
  return random_neighbour(index, random);
}

ConfigurationIndex Moves::perturbed(ConfigurationIndex index, std::size_t steps, Random& random) {
  for (std::size_t i = 0; i < steps; ++i) index = random_neighbour(index, random);
  return index;
}

ConfigurationIndex Moves::towards(ConfigurationIndex from, std::span<const std::uint32_t> target, Random& random) {
  if (const auto exact = space_.index_of(target)) return *exact;
  space_.values_at(from, there_);
  order_ = free_;
  random.shuffle(std::span<std::size_t>(order_));
  ConfigurationIndex reached = from;
  for (const std::size_t p : order_) {
    if (there_[p] == target[p]) continue;
    const std::uint32_t before = there_[p];
    there_[p] = target[p];
    if (const auto found = space_.index_of(there_))
      reached = *found;
    else
      there_[p] = before;
  }
  return reached;
}

ConfigurationIndex Moves::towards(ConfigurationIndex from, std::span<const double> point, Random& random) {
  for (std::size_t p = 0; p < counts_.size(); ++p) {
    const double x = std::isfinite(point[p]) ? std::round(point[p]) : 0.0;
    here_[p] = static_cast<std::uint32_t>(std::clamp(x, 0.0, static_cast<double>(counts_[p] - 1)));
  }
  return towards(from, std::span<const std::uint32_t>(here_), random);
}

}  // namespace ergotune::search
