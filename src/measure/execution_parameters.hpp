// Execution parameters between problem and hardware: from what a problem file says and what a control lists
// to parameters with values, and from a configuration to what has to be set for it.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

/// What a parameter of this kind sets; nullopt for code parameters.
std::optional<ControlQuantity> quantity_of(ParameterKind kind);

/// An execution parameter of a problem made from what the hardware lists: `all`, n equidistant (snapped to
/// supported values), a range with or without step, or a list (each value must be supported). `suggested` are
/// the model's values for Choice::model. The default is the hardware's default value, else the highest.
/// Throws UserError with place.
Parameter make_execution_parameter(const ExecutionParameterSpec& spec, const ControlRange& range,
                                   const std::vector<double>& suggested = {});
/// All of a problem's execution parameters, from one control; names the control in its messages.
std::vector<Parameter> make_execution_parameters(const std::vector<ExecutionParameterSpec>& specs, Control& control,
                                                 const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// Puts them among the problem's parameters, after those that are there; none stays unresolved.
void resolve_execution_parameters(Problem& problem, Control& control,
                                  const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// What has to be set for a configuration; `parameters` are the space's, in order.
ControlSetting setting_of(const std::vector<Parameter>& parameters, const Configuration& configuration);

}  // namespace ergotune
