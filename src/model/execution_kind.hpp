// Recognises parameters that are clocks and power limits, also under other tools' names.
#pragma once

#include "ergotune/space.hpp"

namespace ergotune {

/// The kind of a parameter: its own; for problems and recordings of other tools, the kind that its name indicates
/// (nvml_gr_clock, nvml_mem_clock, nvml_pwr_limit, tegra_gr_clock ...) if all its values are numbers.
ParameterKind execution_kind(const Parameter& parameter);

}  // namespace ergotune
