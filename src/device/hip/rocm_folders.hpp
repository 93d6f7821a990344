// Where ROCm puts its libraries.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ergotune::hip {

/// What to open for one of ROCm's libraries: `names` (newest first) by the loader's own path, then in $ROCM_PATH/lib,
/// /opt/rocm/lib and /opt/rocm-*/lib (newest first).
std::vector<std::string> rocm_libraries(std::span<const char* const> names);

}  // namespace ergotune::hip
