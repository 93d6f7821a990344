// Runs a program with this process's standard streams; ends a verb cleanly when it is interrupted.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace ergotune::cli {

/// Throws UserError if the program does not exist.
void require_program(const std::vector<std::string>& command);

/// "simulate" of "./simulate input.nml".
std::string program_name(const std::vector<std::string>& command);

/// Runs it to its end; the terminal and what is typed there are the program's. Its exit code; 128 and the signal that
/// ended it.
int run_here(const std::vector<std::string>& command);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP and returns the flag that they set. A further signal
/// more than a second later ends the process at once; 30 s after the first it ends in any case.
const std::atomic<bool>* interruption();

}  // namespace ergotune::cli
