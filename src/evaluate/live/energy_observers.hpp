// Attaches the energy measurement to a runner.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "measure/runner.hpp"

namespace ergotune {

/// Adds the observers that measure energy and monitor the device. Throws UserError that lists the sensors tried if none
/// is usable. If the problem itself requests the observer "energy", that observer measures.
void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes);

}  // namespace ergotune
