// AMD's HIP runtime (libamdhip64 of ROCm 5, 6 and 7, and of Debian): the table of CUDA's driver API, filled with HIP's
// functions, and functions that only HIP has. Results, flags and opaque handles are the same for both; device
// attributes are not. Also hiprtc, its compiler, and the list of its devices.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/cuda_api.hpp"
#include "device/cuda/cuda_platform.hpp"
#include "device/cuda/nvrtc_api.hpp"

namespace ergotune::hip {

/// Returns the names under which to open a ROCm library: `names` (newest first) for the loader's search path, then in
/// $ROCM_PATH/lib, /opt/rocm/lib and /opt/rocm-*/lib (newest first).
std::vector<std::string> rocm_libraries(std::span<const char* const> names);

/// hipDeviceAttribute_t, equal in HIP 5.2 to 6.3.
enum DeviceAttribute : int {
  L2_CACHE_SIZE = 19,
  MAX_THREADS_PER_BLOCK = 56,
  MAX_THREADS_PER_MULTIPROCESSOR = 57,
  MULTIPROCESSOR_COUNT = 63,
  MAX_REGISTERS_PER_BLOCK = 71,
  MAX_SHARED_MEMORY_PER_BLOCK = 74,
  WARP_SIZE = 87,
  MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 10002,
};

struct Api : cuda::Api {
  explicit Api(const std::vector<std::string>& libraries);

  /// Fills a structure that has grown: HIP 6 has a larger one under a new name. Only `gcnArchName` is used.
  EntryPoint<int(void*, int)> hipGetDevicePropertiesR0600{this, "hipGetDevicePropertiesR0600", Need::optional};
  EntryPoint<int(void*, int)> hipGetDeviceProperties{this, "hipGetDeviceProperties", Need::optional};
};

/// Returns the table, which is loaded at first use from the library named by ERGOTUNE_HIP, else from the usual places.
/// Callers must check usable().
const Api& api();

/// False if AMD's kernel driver is not loaded, so that there is no need to load the library, which is large. Always
/// true if ERGOTUNE_HIP names a library.
bool driver_is_there();

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

namespace ergotune::hiprtc {

/// Returns the table, which is loaded at first use from the library named by ERGOTUNE_HIPRTC, else from the usual
/// places. Callers must check usable().
const nvrtc::Api& api();

/// Returns file and version of the library and of its compiler. hiprtc's own version number has not changed for years.
std::string version();

/// Returns the supported architectures ("gfx90a" ...); nullopt if the library does not report them. hiprtc 5.2 ends the
/// process if it is asked for another architecture.
std::optional<std::vector<std::string>> architectures();

}  // namespace ergotune::hiprtc
