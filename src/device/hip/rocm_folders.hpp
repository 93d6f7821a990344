// Finds ROCm's libraries.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ergotune::hip {

/// Returns the names under which to open a ROCm library: `names` (newest first) for the loader's search path, then in
/// $ROCM_PATH/lib, /opt/rocm/lib and /opt/rocm-*/lib (newest first).
std::vector<std::string> rocm_libraries(std::span<const char* const> names);

}  // namespace ergotune::hip
