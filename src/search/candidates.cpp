#include "search/candidates.hpp"

#include <algorithm>
#include <numeric>

namespace ergotune::search {

std::vector<ConfigurationIndex> Candidates::draw(const Memory& memory,
                                                 const std::vector<ConfigurationIndex>& incumbents,
                                                 Random& random, std::size_t limit) const {
  std::vector<ConfigurationIndex> drawn;
  if (space_.size() <= limit) {
    drawn.resize(space_.size());
    std::iota(drawn.begin(), drawn.end(), ConfigurationIndex{0});
    return drawn;
  }
  std::vector<ConfigurationIndex> near;
  for (const ConfigurationIndex incumbent : incumbents) {
    space_.neighbours(incumbent, Neighbourhood::hamming, near);
    drawn.insert(drawn.end(), near.begin(), near.end());
    if (drawn.size() > limit / 2) break;
  }
  while (drawn.size() < limit) drawn.push_back(space_.sample(random));
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  std::erase_if(drawn, [&](ConfigurationIndex index) { return memory.known(index); });
  return drawn;
}

}  // namespace ergotune::search
