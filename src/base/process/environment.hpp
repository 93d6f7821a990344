// What the environment of this process says: variables, the user's folders, how many processors it may use.
#pragma once

#include <filesystem>
#include <string>

namespace ergotune {

/// A variable's text; empty where it is not set.
std::string environment_variable(const char* name);

/// A folder of the user's after the XDG base directory specification: $VARIABLE/ergotune, else
/// ~/BELOW_HOME/ergotune; relative paths count as not set. Empty where there is no home.
std::filesystem::path user_folder(const char* variable, const char* below_home);

/// Processors that this process may run on: all of the machine's, fewer in a batch job, a container or under taskset
/// (std::thread::hardware_concurrency counts what is online). At least 1.
unsigned usable_processors();

}  // namespace ergotune
