// The energy counter of an AMD GPU, and what else its gpu_metrics file tells.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "power/sensors/gpu_metrics.hpp"
#include "power/sensors/sysfs_sensor.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {

/// nullopt, and why in `reason`, where the card has no such file or it cannot be read.
std::optional<GpuMetrics> read_gpu_metrics(const Sysfs& sysfs, const DrmDevice& card, std::string& reason);

/// The counters that work, as "amdgpu:card0/energy"; `notes` says of each card with a gpu_metrics file that gives none
/// why.
std::vector<SensorInfo> list_amdgpu_energy(const Sysfs& sysfs, std::vector<std::string>& notes);
/// `info` is one of those, and `card` its card.
std::unique_ptr<Sensor> open_amdgpu_energy(const Sysfs& sysfs, const SensorInfo& info, const DrmDevice& card);

/// Why the clocks of a card are low, and for how much of the time since it was asked last, as its firmware counts or
/// says it.
class AmdgpuThrottle {
 public:
  void note(const GpuMetrics& metrics, DeviceState& state);

 private:
  std::optional<ThrottleResidency> last_;
};

}  // namespace ergotune
