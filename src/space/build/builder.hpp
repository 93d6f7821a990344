// Builds decision diagrams from parameters and restrictions.
#pragma once

#include <utility>
#include <vector>

#include "ergotune/space.hpp"
#include "space/build/diagram.hpp"

namespace ergotune {

struct BuiltSpace {
  /// Parameters with complete value lists: for ranges and generators, the union of what they yield.
  std::vector<Parameter> parameters;
  /// Each parameter is in one chain. A chain contains components one after the other; only components whose parameters
  /// interleave are in different chains.
  std::vector<Diagram> chains;
  /// Number of configurations, saturated at 2^63.
  std::uint64_t size = 0;
  double cartesian_size = 1;
  /// Number of configurations as a real; exact below 2^53.
  double approximate_size = 1;
};

/// Purpose of building a space.
enum class BuildPurpose {
  /// For use: a configuration for which a restriction cannot be evaluated (division by zero), and which no other
  /// restriction excludes, causes a UserError; so does a space that does not fit into memory.
  use,
  /// For counting with some restrictions left out: such configurations are kept, and a space that becomes too large
  /// throws TooManyStates early (space/build/layer_builder.hpp).
  count,
};

BuiltSpace build_diagrams(std::vector<Parameter> parameters, const std::vector<Restriction>& restrictions,
                          const SpaceOptions& options, BuildPurpose purpose = BuildPurpose::use);

/// The indices of a component's parameters, ascending, and its layers.
using ComponentLayers = std::pair<std::vector<std::uint32_t>, Layers>;

/// Assembles components to chains, and counts.
void assemble_chains(BuiltSpace& space, std::vector<ComponentLayers> components);

}  // namespace ergotune
