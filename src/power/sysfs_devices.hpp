// Finds GPUs below /sys, for sensors and controls.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/sysfs.hpp"

namespace ergotune {

inline constexpr std::string_view kDrm = "/sys/class/drm";
inline constexpr std::string_view kDevfreq = "/sys/class/devfreq";

struct DrmDevice {
  std::string name;              ///< "card0"
  std::filesystem::path device;  ///< /sys/class/drm/card0/device
  std::string pci_address;       ///< normalised; empty: unknown
};

/// All graphics devices, of any vendor.
std::vector<DrmDevice> drm_devices(const Sysfs& sysfs);
/// Returns the device at a PCI address in any notation; nullptr if there is none.
const DrmDevice* card_at(const std::vector<DrmDevice>& cards, const std::string& pci_address);

/// Returns the devfreq folder of a Tegra's only GPU; empty on other machines.
std::filesystem::path tegra_devfreq(const Sysfs& sysfs);
/// Returns the text of a device tree property without the terminating NUL.
std::string device_tree_text(const Sysfs& sysfs, const std::filesystem::path& path);

}  // namespace ergotune
