// From parameters and restrictions to decision diagrams.
#pragma once

#include <utility>
#include <vector>

#include "ergotune/space.hpp"
#include "space/build/diagram.hpp"

namespace ergotune {

struct BuiltSpace {
  /// Value lists worked out: for ranges and generators the union of what they give.
  std::vector<Parameter> parameters;
  /// Every parameter is in one chain. A chain holds components one behind the other; only components whose
  /// parameters interleave lie in different chains.
  std::vector<Diagram> chains;
  /// Number of configurations, saturated at 2^63.
  std::uint64_t size = 0;
  double cartesian_size = 1;
  /// Exact as long as it is below 2^53.
  double approximate_size = 1;
};

/// What a space is built for.
enum class BuildPurpose {
  /// To be used: a configuration for which a restriction cannot be evaluated (division by zero) and that no
  /// other
  /// restriction excludes is a UserError; so is a space that does not fit into memory.
  use,
  /// Only to be counted, with restrictions left out: such configurations stay, and what gets too large throws
  /// TooManyStates early (space/build/layer_builder.hpp).
  count,
};

BuiltSpace build_diagrams(std::vector<Parameter> parameters, const std::vector<Restriction>& restrictions,
                          const SpaceOptions& options, BuildPurpose purpose = BuildPurpose::use);

/// A component's parameters (their positions, ascending) and layers.
using ComponentLayers = std::pair<std::vector<std::uint32_t>, Layers>;

/// Puts components into chains and counts.
void assemble_chains(BuiltSpace& space, std::vector<ComponentLayers> components);

}  // namespace ergotune
