// The core voltage of a GPU, from a source other than the driver's library.
#pragma once

#include <optional>
#include <string>

namespace ergotune {

/// V, now. NVIDIA: what `nvidia-smi -q -d VOLTAGE` prints (driver 510 and later, on some GPUs; there is no NVML
/// call), $ERGOTUNE_NVIDIA_SMI names another program. Else the regulator of a Tegra's GPU. Takes some tens of
/// milliseconds; nullopt where unknown. `uuid` may be empty.
std::optional<double> read_core_voltage(const std::string& uuid);

/// The graphics voltage in what nvidia-smi printed, V; nullopt for "N/A".
std::optional<double> voltage_in(const std::string& nvidia_smi_output);

}  // namespace ergotune
