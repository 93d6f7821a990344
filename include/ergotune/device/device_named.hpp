// One device's description, without looking for the others.
#pragma once

#include <string>

#include "ergotune/device/device.hpp"

namespace ergotune {

/// The device that an id stands for ("cuda:0", "cuda:GPU-<uuid>", "opencl", "host"; "" for the best), not opened. Only the driver that
/// is meant is loaded: some end the process when they meet another's compiler in it. Throws UserError naming what there is.
DeviceInfo device_named(const std::string& id);

}  // namespace ergotune
