// Lists CUDA devices and their properties, without creating a context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/cuda_api.hpp"

namespace ergotune::cuda {

struct DeviceEntry {
  DeviceInfo info;
  CUdevice device = 0;
  int architecture = 0;  ///< 90 for sm_90
  /// Limits of dynamic shared memory in bytes without opt-in (48 KiB) and with opt-in.
  int shared_limit = 0, shared_limit_optin = 0;
};

/// Opens a device of a driver with CUDA's interface.
std::unique_ptr<Device> open_device(const Api& api, DeviceEntry entry);

/// Returns all devices in CUDA's order; if there are none, sets `note`.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError if the device does not exist.
DeviceEntry find_device(const std::string& id);

}  // namespace ergotune::cuda
