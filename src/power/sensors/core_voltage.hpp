// The core voltage of a GPU from sources other than NVML.
#pragma once

#include <optional>
#include <string>

namespace ergotune {

/// Returns the present voltage in V; nullopt if unknown. NVIDIA: from `nvidia-smi -q -d VOLTAGE` (driver 510 and later,
/// on some GPUs; NVML has no such call); $ERGOTUNE_NVIDIA_SMI names another program. Tegra: from the regulator of the
/// GPU. Takes some tens of milliseconds. `uuid` may be empty.
std::optional<double> read_core_voltage(const std::string& uuid);

/// Returns the graphics voltage in V from the output of nvidia-smi; nullopt for "N/A".
std::optional<double> voltage_in(const std::string& nvidia_smi_output);

}  // namespace ergotune
