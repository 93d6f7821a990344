// A whole program as target.
#pragma once

#include "tune/target/target.hpp"

namespace ergotune {

/// Opens the program of target.problem on this machine. Throws UserError for a device that runs no programs, for
/// settings that apply to kernels only, and if the program does not exist.
void open_program(Target& target, const SetupOptions& options);

}  // namespace ergotune
