// GPUs as their drivers show them below /sys, for the sensors and for the controls.
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
  std::string pci_address;       ///< normalised; empty where it is not told
};

/// Every graphics card, whoever made it.
std::vector<DrmDevice> drm_devices(const Sysfs& sysfs);
/// The card at a PCI address in any spelling; nullptr when there is none.
const DrmDevice* card_at(const std::vector<DrmDevice>& cards, const std::string& pci_address);

/// The devfreq folder of a Tegra's GPU, of which there is one; empty on other machines.
std::filesystem::path tegra_devfreq(const Sysfs& sysfs);
/// Text of a device tree property: without the NUL that it ends with.
std::string device_tree_text(const Sysfs& sysfs, const std::filesystem::path& path);

}  // namespace ergotune
