// hiprtc, AMD's run-time compiler: NVRTC's functions under different names, in libhiprtc (ROCm 5 and later) or in
// libamdhip64 (ROCm before 6, Debian). It needs no GPU. It loads LLVM into the process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/cuda/nvrtc_api.hpp"

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
