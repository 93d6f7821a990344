// What an NVIDIA GPU is made for, as far as the driver tells.
#pragma once

#include <optional>
#include <string>

namespace ergotune {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Default application clock, MHz: on data-centre GPUs the base clock, on others often the boost clock.
  std::optional<double> default_core_clock_mhz;
};
/// nullopt where no NVML GPU has this UUID.
std::optional<DeviceFacts> nvml_gpu_facts(const std::string& uuid);

}  // namespace ergotune
