// Which CUDA devices there are, and what is known of each, without making a context.
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
  /// Dynamic shared memory above which a kernel must ask for more (48 KiB), and the most it may ask for.
  int shared_plain = 0, shared_most = 0;
};

/// Kernels on one of a driver's devices.
std::unique_ptr<Device> open_device(const Api& api, DeviceEntry entry);

/// All devices, in CUDA's order. Empty with a note when there is none.
std::vector<DeviceEntry> find_devices(std::string* note = nullptr);
/// Throws UserError when it is not there.
DeviceEntry find_device(const std::string& id);

}  // namespace ergotune::cuda
