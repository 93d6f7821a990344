// Execution parameters: combines the problem file with the values that a control supports, and converts configurations
// to control settings.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ergotune/space.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

struct ExecutionParameterSpec;
struct Problem;

/// Returns the quantity that a parameter of this kind sets; nullopt for code parameters.
std::optional<ControlQuantity> quantity_of(ParameterKind kind);

/// Creates a parameter from the values that the hardware supports: `all`, n equidistant values (moved to supported
/// ones), a range with or without step, or a list (whose values must be supported). `suggested`: values from a model
/// for Choice::model. The default is the hardware's default value, else the highest value. Throws UserError with the
/// place.
Parameter make_execution_parameter(const ExecutionParameterSpec& spec, const ControlRange& range,
                                   const std::vector<double>& suggested = {});
/// Creates all execution parameters of a problem for one control, which is named in messages.
std::vector<Parameter> make_execution_parameters(const std::vector<ExecutionParameterSpec>& specs, Control& control,
                                                 const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// Creates all execution parameters and appends them to the problem's parameters; clears Problem::execution_parameters.
void resolve_execution_parameters(Problem& problem, Control& control,
                                  const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// Returns the control settings of a configuration; `parameters` are those of the space, in order.
ControlSetting setting_of(const std::vector<Parameter>& parameters, const Configuration& configuration);

/// The kind of a parameter: its own; for problems and recordings of other tools, the kind that its name indicates
/// (nvml_gr_clock, nvml_mem_clock, nvml_pwr_limit, tegra_gr_clock ...) if all its values are numbers.
ParameterKind execution_kind(const Parameter& parameter);

}  // namespace ergotune
