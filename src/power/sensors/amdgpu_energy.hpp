// The energy counter of an AMD GPU, and other data from its gpu_metrics file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/sensors/gpu_metrics.hpp"
#include "power/sensors/sysfs_sensor.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {

/// Returns nullopt and sets `reason` if the device has no such file or if it cannot be read.
std::optional<GpuMetrics> read_gpu_metrics(const Sysfs& sysfs, const DrmDevice& card, std::string& reason);

/// Returns the usable counters, as "amdgpu:card0/energy". For each device whose gpu_metrics file has no usable counter,
/// adds the reason to `notes`.
std::vector<SensorInfo> list_amdgpu_energy(const Sysfs& sysfs, std::vector<std::string>& notes);
/// Opens a sensor; `info` is an element of list_amdgpu_energy(), and `card` its device.
std::unique_ptr<Sensor> open_amdgpu_energy(const Sysfs& sysfs, const SensorInfo& info, const DrmDevice& card);

/// Determines why the clocks of a device are reduced, and for which share of the time since the last call, from the
/// firmware's counters or status.
class AmdgpuThrottle {
 public:
  void note(const GpuMetrics& metrics, DeviceState& state);

 private:
  std::optional<ThrottleResidency> last_;
};

}  // namespace ergotune
