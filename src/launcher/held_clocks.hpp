// Clocks and limits of wisdom, in force while this process lives.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::launcher {

/// Starts `ergotune clocks set --for` this process, once for each device: that command holds the settings and restores
/// them however this process ends. Waits until they are in force. Why they are not, the first time; else empty.
std::string hold_clocks(const DeviceInfo& device, const std::vector<std::filesystem::path>& wisdom);

}  // namespace ergotune::launcher
