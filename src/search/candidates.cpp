#include "search/candidates.hpp"

#include <algorithm>
#include <numeric>

#include "search/heuristics/moves.hpp"

namespace ergotune::search {

std::vector<ConfigurationIndex> Candidates::draw(const EvaluationCache& memory,
                                                 const std::vector<ConfigurationIndex>& incumbents,
                                                 const std::vector<ConfigurationIndex>& promising, Random& random,
                                                 std::size_t limit) const {
  std::vector<ConfigurationIndex> drawn;
  if (space_.size() <= limit) {
    drawn.resize(space_.size());
    std::iota(drawn.begin(), drawn.end(), ConfigurationIndex{0});
    return drawn;
  }
  drawn = promising;
  std::vector<std::uint32_t> here(space_.dimensions()), there(space_.dimensions());
  std::vector<ConfigurationIndex> near;
  for (const auto* list : {&incumbents, &promising})
    for (const ConfigurationIndex centre : *list) {
      space_.neighbours(centre, Neighbourhood::hamming, near);
      drawn.insert(drawn.end(), near.begin(), near.end());
      if (drawn.size() > limit / 3) break;
    }
  if (!incumbents.empty()) {
    Moves moves(space_);
    // the better ones more often; a neighbourhood of two or three steps is too large to be listed
    const auto pick = [&] {
      return incumbents[std::min(random.below(incumbents.size()), random.below(incumbents.size()))];
    };
    for (const std::size_t until = limit / 3 * 2; drawn.size() < until;) {
      const ConfigurationIndex from = pick();
      if (random.chance(0.3)) {
        space_.values_at(pick(), there);
        space_.values_at(from, here);
        for (std::size_t p = 0; p < here.size(); ++p)
          if (random.chance(0.5)) here[p] = there[p];
        drawn.push_back(moves.towards(from, std::span<const std::uint32_t>(here), random));
      } else {
        drawn.push_back(moves.perturbed(from, 2 + random.below(3), random));
      }
    }
  }
  while (drawn.size() < limit) drawn.push_back(space_.sample(random));
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  std::erase_if(drawn, [&](ConfigurationIndex index) { return memory.known(index); });
  return drawn;
}

}  // namespace ergotune::search
