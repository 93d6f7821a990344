// AMD's HIP run time (libamdhip64 of ROCm 5, 6 and 7, and Debian's): the table of CUDA's driver API filled with HIP's
// functions, and the few that only HIP has. Results, flags and opaque handles are the same on both sides; attributes of
// devices are not.
#pragma once

#include "device/cuda/cuda_api.hpp"

namespace ergotune::hip {

/// hipDeviceAttribute_t, alike in HIP 5.2 to 6.3.
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

  /// A structure that has grown: HIP 6 has a new one under a new name. `gcnArchName` is what is needed of it.
  EntryPoint<int(void*, int)> hipGetDevicePropertiesR0600{this, "hipGetDevicePropertiesR0600", Need::optional};
  EntryPoint<int(void*, int)> hipGetDeviceProperties{this, "hipGetDeviceProperties", Need::optional};
};

/// The table, loaded on first use from the library that ERGOTUNE_HIP names, else from the usual places. Check usable().
const Api& api();

/// False where no AMD GPU can be: its kernel driver has no file. Then there is no need to open the library, which
/// brings half of ROCm with it. A library that was named is always opened.
bool driver_is_there();

}  // namespace ergotune::hip
