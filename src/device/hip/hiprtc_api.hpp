// hiprtc, AMD's run-time compiler: NVRTC's functions under names of its own, in libhiprtc (ROCm 5 and later) or inside
// libamdhip64 (ROCm before 6, Debian). It needs no GPU. It brings LLVM into the process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/cuda/nvrtc_api.hpp"

namespace ergotune::hiprtc {

/// The table, loaded on first use from the library that ERGOTUNE_HIPRTC names, else from the usual places. Check
/// usable().
const nvrtc::Api& api();

/// File and version of the library and of the compiler in it. Its own version number has stood still for years.
std::string version();

/// The architectures that it compiles for ("gfx90a" ...), as the library below it tells; nullopt where it does not.
/// Asked for another, hiprtc 5.2 ends the process.
std::optional<std::vector<std::string>> architectures();

}  // namespace ergotune::hiprtc
