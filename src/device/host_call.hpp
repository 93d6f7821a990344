// The call of a host function: a function `void ergotune_call(void** arguments)` that is compiled along with
// the user's source, so that the compiler itself passes every argument as the function wants it.
#pragma once

#include <string>

#include "ergotune/device/device.hpp"

namespace ergotune::host {

inline constexpr const char* kCallEntry = "ergotune_call";

/// C or C++ text to be put behind the user's source.
std::string call_in_source(const CompileJob& job);
/// C text of its own for Fortran, where every argument goes by reference.
std::string call_of_fortran(const CompileJob& job);

}  // namespace ergotune::host
