// The energy counter of an AMD GPU, and other data from its gpu_metrics file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "power/sensors/sensor_family.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {

// The driver's gpu_metrics file is a binary table of values that the firmware of an AMD GPU counts and measures.
// Layouts are those of the kernel's kgd_pp_interface.h; each begins with its size and revision.

/// Time during which the firmware reduced the clocks, in total and by reason, in firmware cycles; 32-bit counters that
/// wrap.
struct ThrottleResidency {
  std::uint32_t cycles = 0;  ///< total
  std::uint32_t external = 0, power = 0, chip_thermal = 0, regulator_thermal = 0, memory_thermal = 0;
};

/// Fields that the GPU does not fill (all bits set) are nullopt.
struct GpuMetrics {
  std::string revision;  ///< "1.3"
  /// Energy in J since the driver was loaded, in steps of 2^-16 J.
  std::optional<double> energy;
  /// Time of the table, in s since the host's boot (CLOCK_BOOTTIME).
  std::optional<double> taken;
  std::optional<double> socket_power_w, core_clock_mhz;
  /// True if the power is an average computed by the firmware, false if it is instantaneous.
  bool power_is_averaged = false;
  /// Reasons for reduced clocks as bits whose meaning is the same on all chips (revision 1.3; the kernel's
  /// amdgpu_smu.h).
  std::optional<std::uint64_t> throttle_status;
  std::optional<ThrottleResidency> residency;
};

/// Parses a table. Returns nullopt and sets `reason` if the data is not a table, is shorter than its size field, or has
/// an unknown layout, whose fields must not be guessed.
std::optional<GpuMetrics> read_gpu_metrics(std::string_view bytes, std::string& reason);

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
