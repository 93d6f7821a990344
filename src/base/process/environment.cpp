#include "base/process/environment.hpp"

#include <cstdlib>

namespace ergotune {

std::string environment_variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::filesystem::path user_folder(const char* variable, const char* below_home) {
  const std::filesystem::path own = environment_variable(variable), home = environment_variable("HOME");
  if (own.is_absolute()) return own / "ergotune";
  return home.is_absolute() ? home / below_home / "ergotune" : std::filesystem::path();
}

}  // namespace ergotune
