// The control backends behind open_control(): what each file *_control.cpp offers.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "power/controls/control.hpp"

namespace ergotune {

inline constexpr std::array kControlQuantities = {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz,
                                                  ControlQuantity::power_limit_w};
inline constexpr const char* kHelperSocket = "/run/ergotune/ergotuned.sock";

/// "core clock": for messages.
std::string quantity_description(ControlQuantity quantity);
/// "core clock 1410 MHz: <reason>".
std::string error_description(ControlQuantity quantity, double value, const std::string& reason);
/// What Control::check() says where it reads back something else.
ControlResult changed_meanwhile(ControlQuantity quantity, double requested, double now);

// Each opens or returns nullptr with the reason in words.
std::unique_ptr<Control> open_nvml_control(const std::string& id, const ControlEnvironment& environment,
                                           std::string& reason);
std::unique_ptr<Control> open_tegra_control(const ControlEnvironment& environment, std::string& reason);
std::unique_ptr<Control> open_amdgpu_control(const std::string& id, const ControlEnvironment& environment,
                                             std::string& reason);
std::unique_ptr<Control> open_cpufreq_control(const ControlEnvironment& environment, std::string& reason);
/// Through ergotuned, by device key. `direct` is the same device opened without it: taken over, for reading, where the
/// helper serves.
std::unique_ptr<Control> open_helper_control(const std::string& device_key, const ControlEnvironment& environment,
                                             std::string& reason, std::unique_ptr<Control>& direct);

std::vector<std::string> list_nvml_controls(const ControlEnvironment& environment);
std::vector<std::string> list_tegra_controls(const ControlEnvironment& environment);
std::vector<std::string> list_amdgpu_controls(const ControlEnvironment& environment);
std::vector<std::string> list_cpufreq_controls(const ControlEnvironment& environment);

/// Ids by what device/ knows of a device; empty when there is none.
std::string find_nvml_control(const std::string& uuid, const std::string& pci_address,
                              const ControlEnvironment& environment);
std::string find_amdgpu_control(const std::string& pci_address, const ControlEnvironment& environment);
std::string find_control(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                         const ControlEnvironment& environment);

}  // namespace ergotune
