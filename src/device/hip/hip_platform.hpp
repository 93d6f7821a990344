// Which HIP devices there are, and what is known of each.
#pragma once

#include <string>
#include <vector>

#include "device/cuda/cuda_platform.hpp"
#include "device/hip/hip_api.hpp"

namespace ergotune::hip {

struct DeviceEntry : cuda::DeviceEntry {
  /// What code is compiled for: "gfx90a:sramecc+:xnack-".
  std::string target;
};

/// All devices, in HIP's order. Empty with a note when there is none.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError when it is not there.
DeviceEntry find_device(const std::string& id);

/// "gfx90a" of "gfx90a:sramecc+:xnack-".
std::string architecture_of(const std::string& target);

}  // namespace ergotune::hip
