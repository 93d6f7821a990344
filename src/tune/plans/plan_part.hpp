// The part of a space from which a stage may choose.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/power_model.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune {
struct Problem;
}  // namespace ergotune

namespace ergotune::plans {

/// Input of a stage: results of earlier stages.
struct StageState {
  /// The value positions of all parameters that the preceding stage found, else the defaults.
  std::vector<std::uint32_t> current;
  /// The model's best clock for this kernel and the range of clocks around it, MHz.
  std::optional<double> model_clock;
  std::optional<ClockRange> model_range;
  /// MHz; nullopt: unknown.
  std::optional<double> base_clock;
};

/// For each parameter, the value positions that a stage allows.
using Allowed = std::vector<std::set<std::uint32_t>>;

/// The parameters that an entry of a stage's list refers to: one parameter by its name, or a group by "code", "clocks",
/// "power" or "all". Throws UserError for any other name.
std::vector<std::size_t> parameters_named(const std::string& name, const std::vector<Parameter>& parameters,
                                          const std::vector<ParameterKind>& kinds);

/// The value positions of a default configuration: each parameter's default, else the highest clock and limit and the
/// middle code value, moved to the nearest configuration of the space.
std::vector<std::uint32_t> default_positions(const SearchSpace& space, const std::vector<ParameterKind>& kinds);

/// The positions that a stage allows. Throws UserError for a value that a parameter does not have.
Allowed allowed_positions(const PlanStage& stage, const SearchSpace& space, const std::vector<ParameterKind>& kinds,
                          const StageState& state);

/// The allowed configurations as indices into the whole space; nullopt if there are more than some millions.
std::optional<std::vector<ConfigurationIndex>> indices_of(const SearchSpace& space, const Allowed& allowed);

/// The allowed part as a separate space for strategies.
SearchSpace part_of(const Problem& problem, const SearchSpace& space, const Allowed& allowed,
                    const std::optional<std::vector<ConfigurationIndex>>& indices, const Constants& constants);

}  // namespace ergotune::plans
