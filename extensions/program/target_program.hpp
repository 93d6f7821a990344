// A whole program as a target.
#pragma once

#include "tune/target/target.hpp"

namespace ergotune {

/// Opens the program of target.problem on this machine. Throws UserError for a device that runs no programs, for what
/// is of kernels only, and for a program that is not there.
void open_program(Target& target, const SetupOptions& options);

}  // namespace ergotune
