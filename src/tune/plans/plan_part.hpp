// The part of a space that a stage may choose from.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "model/power_model.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune::plans {

/// What is known when a stage begins.
struct StageState {
  /// Value positions of every parameter: found by the stage before, else defaults.
  std::vector<std::uint32_t> current;
  /// The model's best clock for this kernel and the clocks around it, MHz.
  std::optional<double> model_clock;
  std::optional<ClockRange> model_range;
  /// MHz; nullopt where unknown.
  std::optional<double> base_clock;
};

/// Positions, by parameter, that a stage allows.
using Allowed = std::vector<std::set<std::uint32_t>>;

/// Where a name of a stage's lists means parameters: a parameter itself, "code", "clocks", "power", "all".
/// Throws UserError for a name that is neither.
std::vector<std::size_t> parameters_named(const std::string& name, const std::vector<Parameter>& parameters,
                                          const std::vector<ParameterKind>& kinds);

/// The positions of a default configuration: each parameter's default, else the highest clock and limit and
/// the first code value, moved to the nearest configuration of the space.
std::vector<std::uint32_t> default_positions(const SearchSpace& space, const std::vector<ParameterKind>& kinds);

/// Throws UserError for a value that a parameter does not take.
Allowed allowed_positions(const PlanStage& stage, const SearchSpace& space, const std::vector<ParameterKind>& kinds,
                          const StageState& state);

/// Indices into the whole space of what is allowed, up to spaces of some millions; nullopt beyond.
std::optional<std::vector<ConfigurationIndex>> indices_of(const SearchSpace& space, const Allowed& allowed);

/// The part as a space of its own, for strategies.
SearchSpace part_of(const Problem& problem, const SearchSpace& space, const Allowed& allowed,
                    const std::optional<std::vector<ConfigurationIndex>>& indices, const Constants& constants);

}  // namespace ergotune::plans
