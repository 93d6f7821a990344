// Device code with data read from it during compilation, packed in one string for a Binary and the compile cache.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ergotune::device {

struct PackedCode {
  std::string code;
  /// Instruction counts by names of quantities ("static_fma"), and the code from which they were counted ("SASS",
  /// "PTX"); empty: unknown.
  std::map<std::string, double> instructions = {};
  std::string instructions_from = {};
  /// Attributes of a CUDA function that are set when the code is loaded: the driver's number of each and the value.
  std::map<int, int> attributes = {};

  std::string pack() const;
  /// Bytes that were not created by pack() are returned as code.
  static PackedCode unpack(const std::string& bytes);
};

/// Takes the options that are attributes of a CUDA function out of compiler options. Throws DeviceError for a value
/// that is no number or out of range.
std::map<int, int> take_function_attributes(std::vector<std::string>& options);

}  // namespace ergotune::device
