// Which parameters are clocks and power limits, whoever named them.
#pragma once

#include "ergotune/space.hpp"

namespace ergotune {

/// The kind of a parameter: its own, or for problems and recordings of other tools what its name says
/// (nvml_gr_clock, nvml_mem_clock, nvml_pwr_limit, tegra_gr_clock ...). Only parameters whose values are all
/// numbers are meant.
ParameterKind execution_kind(const Parameter& parameter);

}  // namespace ergotune
