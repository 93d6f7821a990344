#include <algorithm>

#include "space/build/builder.hpp"

namespace ergotune {

void assemble_chains(BuiltSpace& space, std::vector<ComponentLayers> components) {
  std::sort(components.begin(), components.end(),
            [](const auto& a, const auto& b) { return a.first.front() < b.first.front(); });
  std::vector<std::vector<std::size_t>> chains;
  for (std::size_t c = 0; c < components.size(); ++c) {
    const auto fits = [&](const auto& chain) {
      return components[chain.back()].first.back() < components[c].first.front();
    };
    const auto chain = std::find_if(chains.begin(), chains.end(), fits);
    if (chain == chains.end())
      chains.push_back({c});
    else
      chain->push_back(c);
  }
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  space.size = 1;
  space.approximate_size = 1;
  for (const auto& chain : chains) {
    Diagram diagram;
    for (auto c = chain.rbegin(); c != chain.rend(); ++c)
      diagram.prepend(components[*c].first, std::move(components[*c].second));
    space.approximate_size *= diagram.approximate_size();
    const Wide product = static_cast<Wide>(space.size) * diagram.size();
    space.size = product >= kLimit ? kLimit : static_cast<std::uint64_t>(product);
    space.chains.push_back(std::move(diagram));
  }
}

}  // namespace ergotune
