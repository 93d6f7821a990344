// Leaves host code out of a CUDA source, which run-time compilation refuses.
#pragma once

#include <string>
#include <string_view>

#include "base/kernel_source/identifiers.hpp"

namespace ergotune::kernel_source {

/// Returns the source with what device code does not use replaced by blanks: functions without __device__ or __global__
/// (constexpr functions and those marked by a macro remain if device code names them), other declarations that device
/// code does not name (a static_assert remains, with what it names, unless that is of the host), and #include of
/// Thrust, whose headers are for the host, if it names nothing of Thrust. Lines and positions are preserved. Returns
/// the source unchanged if its braces are not balanced. `used`: names that other files use, for a header.
std::string device_code_of(std::string_view source, const Identifiers& used = {});

}  // namespace ergotune::kernel_source
