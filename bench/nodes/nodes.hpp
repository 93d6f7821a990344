#pragma once

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace ergotune::bench {

int cost(int count, char** arguments);
int parallel(int count, char** arguments);

/// What follows "--NAME", or `otherwise`.
inline std::string option(int count, char** arguments, const char* name, const char* otherwise) {
  for (int i = 0; i + 1 < count; ++i)
    if (!std::strncmp(arguments[i], "--", 2) && !std::strcmp(arguments[i] + 2, name)) return arguments[i + 1];
  return otherwise;
}
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace ergotune::bench
