// Detects readings that are impossible for a GPU, and the uncertainty that a calibration leaves.
#pragma once

#include <string>

#include "measure/energy/energy.hpp"

namespace ergotune {

/// Returns why a power is impossible for such a GPU ("it reads 4.29e+06 W, far above any limit of its GPU"); empty if
/// it is possible.
std::string why_implausible(const SensorInfo& info, double watts);

/// True if all readings are numbers and, for a power sensor, possible for its GPU. (Increments of counters are checked
/// where they are computed.)
bool plausible(const SensorTrace& trace);
/// Removes implausible readings. If they are more than a tenth, returns the reason for one of them, else an empty
/// string.
std::string drop_implausible(SensorTrace& trace);

/// Returns the relative standard deviation at a power in W that results from the uncertainty of gain and offset.
double calibration_error(const SensorInfo& info, double watts);

}  // namespace ergotune
