// Environment of this process: variables, the user's folders, number of usable CPUs.
#pragma once

#include <filesystem>
#include <string>

namespace ergotune {

/// Returns the value of a variable; empty if it is not set.
std::string environment_variable(const char* name);

/// Returns a folder of the user according to the XDG base directory specification: $VARIABLE/ergotune, else
/// ~/BELOW_HOME/ergotune. Relative paths count as not set. Empty if there is no home directory.
std::filesystem::path user_folder(const char* variable, const char* below_home);

/// Returns the number of CPUs on which this process may run, at least 1. A batch job, a container or taskset may
/// restrict it (std::thread::hardware_concurrency counts all that are online).
unsigned usable_processors();

}  // namespace ergotune
