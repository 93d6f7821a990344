// What the environment says.
#pragma once

#include <filesystem>
#include <string>

namespace ergotune {

/// A variable's text; empty where it is not set.
std::string environment_variable(const char* name);

/// A folder of the user's after the XDG base directory specification: $VARIABLE/ergotune, else
/// ~/BELOW_HOME/ergotune; relative paths count as not set. Empty where there is no home.
std::filesystem::path user_folder(const char* variable, const char* below_home);

}  // namespace ergotune
