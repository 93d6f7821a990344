// What accompanies a program from its beginning to its end: sensors that are read, a setting that is in force.
#pragma once

#include <string>

namespace ergotune {

/// Its constructor makes it ready.
class Companion {
 public:
  virtual ~Companion() = default;
  virtual void begin() = 0;
  /// What it found, a JSON document.
  virtual std::string end() = 0;
};

}  // namespace ergotune
