// Device code with what was read from it on the way: one string, as it lies in a Binary and in the compile cache.
#pragma once

#include <map>
#include <string>

namespace ergotune::device {

struct PackedCode {
  std::string code;
  /// How many instructions of which kind, by the names of quantities ("static_fma"), and what was read for it ("SASS",
  /// "PTX"); empty where unknown.
  std::map<std::string, double> instructions = {};
  std::string instructions_from = {};

  std::string pack() const;
  /// What was not packed is code.
  static PackedCode unpack(const std::string& bytes);
};

}  // namespace ergotune::device
