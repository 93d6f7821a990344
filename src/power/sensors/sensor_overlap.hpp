// Which sensors see the same energy: the energies of several sensors are added, and nothing may be counted twice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "power/sensors/sensor.hpp"

namespace ergotune {

/// True for two sensors of one device, and where one covers what the other does: a node its parts, a package its cores.
/// (RAPL's memory is no part of its package.)
bool sensors_overlap(const SensorInfo& a, const SensorInfo& b);

/// Throws UserError where two of them overlap.
void refuse_overlapping(const std::vector<std::unique_ptr<Sensor>>& sensors);

/// Ids of the sensors that together cover what can be read on this machine, each device once, by its best sensor.
std::vector<std::string> sensors_of_machine();

}  // namespace ergotune
