#include "power/sysfs_devices.hpp"

#include <algorithm>
#include <array>

namespace ergotune {
namespace {

std::string pci_address_of(const Sysfs& sysfs, const std::filesystem::path& device) {
  // "PCI_SLOT_NAME=0000:03:00.0" in uevent, else the target of the link "device"
  const std::string uevent = sysfs.read(device / "uevent").value_or("");
  const std::string_view key = "PCI_SLOT_NAME=";
  if (const auto at = uevent.find(key); at != std::string::npos)
    return normalise_pci_address(uevent.substr(at + key.size(), uevent.find('\n', at) - at - key.size()));
  std::error_code code;
  return normalise_pci_address(std::filesystem::canonical(sysfs.real(device), code).filename().string());
}

}  // namespace

std::vector<DrmDevice> drm_devices(const Sysfs& sysfs) {
  std::vector<DrmDevice> cards;
  for (const auto& name : sysfs.list(kDrm)) {
    if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;  // card0-DP-1 is a connector
    const auto device = std::filesystem::path(kDrm) / name / "device";
    cards.push_back({name, device, pci_address_of(sysfs, device)});
  }
  return cards;
}

const DrmDevice* card_at(const std::vector<DrmDevice>& cards, const std::string& pci_address) {
  const std::string wanted = normalise_pci_address(pci_address);
  if (wanted.empty()) return nullptr;
  const auto found = std::ranges::find_if(cards, [&](const DrmDevice& card) { return card.pci_address == wanted; });
  return found == cards.end() ? nullptr : &*found;
}

std::filesystem::path tegra_devfreq(const Sysfs& sysfs) {
  constexpr std::array names = {"gv11b", "gp10b", "ga10b", "gpu", "gm20b"};
  for (const auto& entry : sysfs.list(kDevfreq)) {
    const auto folder = std::filesystem::path(kDevfreq) / entry;
    const std::string name = device_tree_text(sysfs, folder / "device/of_node/name");
    if (std::ranges::find(names, name) != names.end()) return folder;
    // On Thor, JetPack 7 uses a different name.
    if (entry.find("gpu-gpc-0") != std::string::npos) return folder;
  }
  return {};
}

std::string device_tree_text(const Sysfs& sysfs, const std::filesystem::path& path) {
  std::string text = sysfs.read(path).value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

}  // namespace ergotune
