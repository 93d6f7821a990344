// Builds the layers of one component. Prefixes of values are merged if the remaining restrictions cannot distinguish
// them (by the values of the subexpressions that these still need).
#pragma once

#include <vector>

#include "space/build/diagram.hpp"
#include "space/expression/program.hpp"

namespace ergotune {

/// The values that a parameter can take after a prefix; by default its complete list.
struct Candidates {
  // a range of integers
  program::OperationId start = program::kNone, stop = program::kNone, step = program::kNone;
  // or the index of one of these lists of positions (ascending)
  program::OperationId set = program::kNone;
  const std::vector<std::vector<std::uint32_t>>* sets = nullptr;
};

struct Component {
  std::vector<std::uint32_t> members;             ///< indices of parameters, ascending
  std::vector<program::OperationId> conditions;   ///< all must hold; none is constant
  std::vector<Candidates> candidates;             ///< one per member
  program::OperationId failure = program::kNone;  ///< true if some restriction cannot be evaluated
};

/// A configuration of the component that no restriction excludes, and for which some restriction cannot be evaluated.
struct UnevaluableConfiguration {
  std::vector<std::uint32_t> positions;  ///< one per member
};

/// Limits above which building stops.
struct LayerLimits {
  std::size_t states = 100'000'000;   ///< per level
  std::size_t choices = 400'000'000;  ///< per level
};

/// Thrown if a limit is exceeded.
struct TooManyStates {
  std::uint32_t parameter;  ///< at which the limit was exceeded
};

/// Throws UnevaluableConfiguration, TooManyStates, and UserError for a range whose step is 0.
Layers build_layers(const program::Program& program, const Component& component, const LayerLimits& limits = {});

}  // namespace ergotune
