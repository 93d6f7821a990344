// A device described by a file (profiles/*.toml): its limits, so that a space for an H100 can be explored on a laptop,
// and what the simulated evaluator needs to know of its clocks and power.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct DeviceProfile {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// The same names as DeviceInfo::properties, "device." included.
  Constants properties;
  /// Every number of the file's other tables by "table.key" (SI units): "power.idle_w", "clock.core_max_mhz" ...
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> lists;
  std::map<std::string, std::string> sources;  ///< where a number comes from
  std::set<std::string> assumed;               ///< unpublished numbers, marked so in the file
};

/// By shipped name ("a100", "h100", case-insensitive) or by path. Throws UserError naming the shipped ones.
DeviceProfile load_device_profile(const std::string& name_or_file);
std::vector<std::string> device_profile_names();

}  // namespace ergotune
