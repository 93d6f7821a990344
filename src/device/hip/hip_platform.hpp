// Lists HIP devices and their properties.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/cuda_platform.hpp"
#include "device/hip/hip_api.hpp"

namespace ergotune::hip {

struct DeviceEntry : cuda::DeviceEntry {
  /// Compilation target: "gfx90a:sramecc+:xnack-".
  std::string target;
};

/// Returns all devices in HIP's order; if there are none, sets `note`.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError if the device does not exist.
DeviceEntry find_device(const std::string& id);

/// Returns "gfx90a" for "gfx90a:sramecc+:xnack-".
std::string architecture_of(const std::string& target);

}  // namespace ergotune::hip
