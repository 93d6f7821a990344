// Combines several measurements of one configuration.
#pragma once

#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

/// Returns the mean of independent measurements of one configuration (confirmation repeats). Each quantity and metric
/// is averaged; its standard error is the larger of the scatter between the measurements and the error derived from
/// their standard errors. Properties of the compiled code keep their value. A wrong result is returned unchanged.
/// Measurements with other failures are left out with a warning, since the configuration worked before; one of them is
/// returned if no measurement succeeded. `rounds` must not be empty.
Measurement combine(const std::vector<Measurement>& rounds);

}  // namespace ergotune
