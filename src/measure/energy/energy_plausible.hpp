// Readings that no GPU can give, and what a calibration against a meter leaves open.
#pragma once

#include <string>

#include "measure/energy/energy.hpp"

namespace ergotune {

/// Empty for a power that such a GPU can draw; else "it reads 4.29e+06 W, far above any limit of its GPU".
std::string why_implausible(const SensorInfo& info, double watts);

/// True when every reading is a number, and of a power sensor one that its GPU can draw. (A counter's increments are
/// judged where they are formed.)
bool plausible(const SensorTrace& trace);
/// Leaves out the readings that are not. Where they are more than a tenth, what there is to say of one; else empty.
std::string drop_implausible(SensorTrace& trace);

/// What gain and offset of a calibration leave open at a power in W: a relative standard deviation.
double calibration_error(const SensorInfo& info, double watts);

}  // namespace ergotune
