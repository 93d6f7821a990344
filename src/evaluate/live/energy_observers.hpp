// Where the energy measurement is hooked on a runner.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "measure/runner.hpp"

namespace ergotune {

/// Adds the observers that measure energy and watch the device. Without a usable sensor throws UserError
/// naming what was looked for. Where the problem itself asks for the observer "energy", that one measures.
void add_energy_observers(Runner& runner, const DeviceInfo& device, const std::vector<std::string>& sensors,
                          double energy_seconds, const MeasureOptions& measure, std::vector<std::string>& notes);

}  // namespace ergotune
