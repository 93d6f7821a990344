// Applies the clocks and limits of wisdom while this process runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::launcher {

/// Starts `ergotune clocks set --for` this process, once per device. That command holds the settings, and restores them
/// however this process ends. Waits until they are in force. Returns the reason at the first failure, otherwise an
/// empty string.
std::string apply_wisdom_clocks(const DeviceInfo& device, const std::vector<std::filesystem::path>& wisdom);

}  // namespace ergotune::launcher
