// Device code with data read from it during compilation, packed in one string for a Binary and the compile cache.
#pragma once

#include <map>
#include <string>

namespace ergotune::device {

struct PackedCode {
  std::string code;
  /// Instruction counts by names of quantities ("static_fma"), and the code from which they were counted ("SASS",
  /// "PTX"); empty: unknown.
  std::map<std::string, double> instructions = {};
  std::string instructions_from = {};

  std::string pack() const;
  /// Bytes that were not created by pack() are returned as code.
  static PackedCode unpack(const std::string& bytes);
};

}  // namespace ergotune::device
