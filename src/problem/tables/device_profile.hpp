// Device profiles (profiles/*.toml): the limits of a device, so that the search space for an H100 can be explored on a
// laptop, and its clocks and power for the simulated evaluator.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct EmbeddedProfile {
  std::string_view name;
  std::string_view text;
};

/// The profiles, sorted by name.
const std::vector<EmbeddedProfile>& embedded_profiles();

struct DeviceProfile {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Named as in DeviceInfo::properties, including the prefix "device.".
  Constants properties;
  /// All numbers of the file's other tables by "table.key", in SI units: "power.idle_w", "clock.core_max_mhz" ...
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> lists;
  std::map<std::string, std::string> sources;  ///< sources of the numbers
  std::set<std::string> assumed;               ///< numbers that are assumed because none is published
};

/// Loads a profile by shipped name ("a100", "h100", case-insensitive) or by path. Throws UserError that lists the
/// shipped names.
DeviceProfile load_device_profile(const std::string& name_or_file);
std::vector<std::string> device_profile_names();

}  // namespace ergotune
