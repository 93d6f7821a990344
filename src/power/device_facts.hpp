// What an NVIDIA board is made for, as far as the driver tells.
#pragma once

#include <optional>
#include <string>

namespace ergotune {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Default application clock, MHz: on data-centre boards the base clock, on others often the boost clock.
  std::optional<double> default_core_clock_mhz;
};
/// nullopt where no NVML board has this UUID.
std::optional<DeviceFacts> nvml_board_facts(const std::string& uuid);

}  // namespace ergotune
