// The amdgpu driver's gpu_metrics file: one binary table of what the firmware of an AMD GPU counts and measures.
// Layouts are those of the kernel's kgd_pp_interface.h; each begins with its own size and revision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ergotune {

/// How long the firmware held the clocks down, and for what, in its own cycles; counters of 32 bits that wrap.
struct ThrottleResidency {
  std::uint32_t cycles = 0;  ///< all
  std::uint32_t external = 0, power = 0, chip_thermal = 0, regulator_thermal = 0, memory_thermal = 0;
};

/// Fields that the GPU does not fill (all bits set) are absent.
struct GpuMetrics {
  std::string revision;  ///< "1.3"
  /// Energy since the driver was loaded, in J; in steps of 2^-16 J.
  std::optional<double> energy;
  /// When the driver took the table, in s of the host's time since boot (CLOCK_BOOTTIME).
  std::optional<double> taken;
  std::optional<double> socket_power_w, core_clock_mhz;
  /// True where the power is the firmware's average, otherwise it is that of the moment.
  bool power_is_averaged = false;
  /// Why the clocks are low, as bits that mean the same on every chip (revision 1.3; the kernel's amdgpu_smu.h).
  std::optional<std::uint64_t> throttle_status;
  std::optional<ThrottleResidency> residency;
};

/// nullopt, and why in `reason`, for a table that is none, is shorter than it says, or has a layout that is not known:
/// a field read in the wrong place would be a number like any other.
std::optional<GpuMetrics> read_gpu_metrics(std::string_view bytes, std::string& reason);

}  // namespace ergotune
