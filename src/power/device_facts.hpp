// Properties of an NVIDIA GPU that its driver reports through NVML: its base clock, and how programs share it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ergotune {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Default application clock in MHz: the base clock of data-centre GPUs, often the boost clock of others.
  std::optional<double> default_core_clock_mhz;
};
/// Returns nullopt if no NVML GPU has this UUID.
std::optional<DeviceFacts> nvml_gpu_facts(const std::string& uuid);

/// Describes what restricts or disturbs measurements because an NVIDIA GPU is shared: MIG, an exclusive or prohibited
/// compute mode, an MPS server. Empty for a GPU without restrictions and for one that NVML does not know.
std::vector<std::string> nvml_sharing_notes(const std::string& uuid, const std::string& pci_address);

}  // namespace ergotune
