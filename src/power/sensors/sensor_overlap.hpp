// Determines which sensors measure the same energy, since energies are added and must not be counted twice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "power/sensors/sensor.hpp"

namespace ergotune {

/// True if two sensors belong to one device, or if one contains the other: a node contains its parts, a package its
/// cores. (RAPL's memory is not part of the package.)
bool sensors_overlap(const SensorInfo& a, const SensorInfo& b);

/// Throws UserError if two of the sensors overlap.
void require_disjoint(const std::vector<std::unique_ptr<Sensor>>& sensors);

/// Returns the ids of sensors that together cover this machine, each device once, by its best sensor.
std::vector<std::string> sensors_of_machine();

}  // namespace ergotune
