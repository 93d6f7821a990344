// The backends of open_control(), one per file *_control.cpp.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune {

/// Bounds for protocols that serialise controls (base/messages/serialise.hpp).
constexpr ControlQuantity last_value(ControlQuantity) { return ControlQuantity::power_limit_w; }
constexpr ControlStatus last_value(ControlStatus) { return ControlStatus::failed; }

inline constexpr std::array kControlQuantities = {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz,
                                                  ControlQuantity::power_limit_w};
inline constexpr const char* kHelperSocket = "/run/ergotune/ergotuned.sock";

/// Returns "core clock" ... for messages.
std::string quantity_description(ControlQuantity quantity);
/// Returns "core clock 1410 MHz: <reason>".
std::string error_description(ControlQuantity quantity, double value, const std::string& reason);
/// Result of Control::check() if the value that is read back differs.
ControlResult changed_meanwhile(ControlQuantity quantity, double requested, double now);

// Each of these opens a control, or returns nullptr and sets `reason`.
std::unique_ptr<Control> open_nvml_control(const std::string& id, const ControlEnvironment& environment,
                                           std::string& reason);
std::unique_ptr<Control> open_tegra_control(const ControlEnvironment& environment, std::string& reason);
std::unique_ptr<Control> open_amdgpu_control(const std::string& id, const ControlEnvironment& environment,
                                             std::string& reason);
std::unique_ptr<Control> open_cpufreq_control(const ControlEnvironment& environment, std::string& reason);
/// Opens a device through ergotuned, by device key. `direct` is the same device opened without the helper; if the
/// helper serves the device, the helper's control takes it over for reading.
std::unique_ptr<Control> open_helper_control(const std::string& device_key, const ControlEnvironment& environment,
                                             std::string& reason, std::unique_ptr<Control>& direct);
/// Which client of ergotuned has the lease of a device: "pid 4711, user 1000, core_clock_mhz 1395"; empty if none has.
std::string helper_lease(const std::string& device_key, const ControlEnvironment& environment);

std::vector<std::string> list_nvml_controls(const ControlEnvironment& environment);
std::vector<std::string> list_tegra_controls(const ControlEnvironment& environment);
std::vector<std::string> list_amdgpu_controls(const ControlEnvironment& environment);
std::vector<std::string> list_cpufreq_controls(const ControlEnvironment& environment);

/// Return the id of the control of a device; empty if there is none.
std::string find_nvml_control(const std::string& uuid, const std::string& pci_address,
                              const ControlEnvironment& environment);
std::string find_amdgpu_control(const std::string& pci_address, const ControlEnvironment& environment);
std::string find_control(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                         const ControlEnvironment& environment);

}  // namespace ergotune
