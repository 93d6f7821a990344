// Finds the layers of one component: prefixes of values are kept apart only as far as the restrictions still
// to come can tell them apart (by the values of the subexpressions that these still need).
#pragma once

#include <vector>

#include "space/build/diagram.hpp"
#include "space/expression/program.hpp"

namespace ergotune {

/// Which values a parameter can take after a prefix; all of its list by default.
struct Candidates {
  // a range; integers
  program::OperationId start = program::kNone, stop = program::kNone, step = program::kNone;
  // or the number of one of these lists of positions (ascending)
  program::OperationId set = program::kNone;
  const std::vector<std::vector<std::uint32_t>>* sets = nullptr;
};

struct Component {
  std::vector<std::uint32_t> members;             ///< parameters' positions, ascending
  std::vector<program::OperationId> conditions;   ///< all must hold; none is constant
  std::vector<Candidates> candidates;             ///< of each member
  program::OperationId failure = program::kNone;  ///< some restriction cannot be evaluated
};

/// A configuration of the component that no restriction excludes and for which some restriction cannot be
/// evaluated.
struct UnevaluableConfiguration {
  std::vector<std::uint32_t> positions;  ///< of each member
};

/// How much a component may take before building gives up.
struct LayerLimits {
  std::size_t states = 100'000'000;   ///< of one level
  std::size_t choices = 400'000'000;  ///< of one level
};

/// Thrown when a limit is passed.
struct TooManyStates {
  std::uint32_t parameter;  ///< where
};

/// Throws UnevaluableConfiguration and TooManyStates; UserError for a range whose step is 0.
Layers build_layers(const program::Program& program, const Component& component, const LayerLimits& limits = {});

}  // namespace ergotune
