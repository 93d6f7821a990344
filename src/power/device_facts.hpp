// Properties of an NVIDIA GPU, as far as the driver reports them.
#pragma once

#include <optional>
#include <string>

namespace ergotune {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Default application clock in MHz: the base clock of data-centre GPUs, often the boost clock of others.
  std::optional<double> default_core_clock_mhz;
};
/// Returns nullopt if no NVML GPU has this UUID.
std::optional<DeviceFacts> nvml_gpu_facts(const std::string& uuid);

}  // namespace ergotune
