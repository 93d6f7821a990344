// From parameters and restrictions to decision diagrams.
#pragma once

#include <vector>

#include "ergotune/space/search_space.hpp"
#include "space/diagram.hpp"

namespace ergotune {

struct BuiltSpace {
  /// Value lists worked out: for ranges and generators the union of what they give.
  std::vector<Parameter> parameters;
  /// Every parameter is in one chain. A chain holds components one behind the other; only components whose
  /// parameters interleave lie in different chains.
  std::vector<Diagram> chains;
  double cartesian_size = 1;
  /// Exact as long as it is below 2^53.
  double approximate_size = 1;
  /// False when the space holds 2^63 configurations or more.
  bool fits = true;
};

BuiltSpace build_diagrams(std::vector<Parameter> parameters, const std::vector<Restriction>& restrictions,
                          const SpaceOptions& options);

/// Puts components (each: its parameters' positions, ascending, and its layers) into chains.
void assemble_chains(BuiltSpace& space,
                     std::vector<std::pair<std::vector<std::uint32_t>, Layers>> components);

}  // namespace ergotune
