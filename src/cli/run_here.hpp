// Runs a program with this process's standard streams.
#pragma once

#include <string>
#include <vector>

namespace ergotune::cli {

/// Throws UserError if the program does not exist.
void require_program(const std::vector<std::string>& command);

/// Runs a program to its end; it controls the terminal. Returns its exit code, or 128 plus the signal that ended it.
int run_here(const std::vector<std::string>& command);

}  // namespace ergotune::cli
