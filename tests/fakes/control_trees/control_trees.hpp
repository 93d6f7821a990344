// Sysfs trees of devices whose clocks can be set: built in a temporary folder, so their state outlives every process
// that a test kills. They are plain files: unlike a kernel they take every write, so tests also see wrong ones.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "temporary_folder.hpp"

namespace control_trees {

class Tree {
 public:
  const std::filesystem::path& root() const { return folder_.path(); }
  std::filesystem::path real(const std::string& path) const { return root() / path.substr(1); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(real(path).parent_path());
    std::ofstream(real(path)) << text << "\n";
  }
  std::string get(const std::string& path) const {
    std::ifstream file(real(path));
    std::stringstream text;
    text << file.rdbuf();
    std::string all = text.str();
    while (!all.empty() && (all.back() == '\n' || all.back() == ' ')) all.pop_back();
    return all;
  }
  /// Every file with its text: what a test compares before and after.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
      if (!entry.is_regular_file()) continue;
      const auto path = (std::filesystem::path("/") / entry.path().lexically_relative(root())).string();
      files[path] = get(path);
    }
    return files;
  }

 private:
  ergotune::TemporaryFolder folder_;
};

inline constexpr const char* kTegraGpu = "/sys/class/devfreq/17000000.ga10b";
/// An Orin's GPU: 306 to 1300.5 MHz, free, railgating on.
inline void add_tegra(const Tree& tree) {
  const std::string gpu = kTegraGpu;
  tree.put(gpu + "/device/of_node/name", std::string("ga10b"));
  tree.put(gpu + "/available_frequencies",
           "306000000 408000000 510000000 612000000 714000000 816000000 918000000 1020000000 1122000000 1224000000 "
           "1300500000");
  tree.put(gpu + "/min_freq", "306000000");
  tree.put(gpu + "/max_freq", "1300500000");
  tree.put(gpu + "/cur_freq", "306000000");
  tree.put(gpu + "/governor", "nvhost_podgov");
  tree.put(gpu + "/device/railgate_enable", "1");
}

inline constexpr const char* kTegraEmc = "/sys/kernel/debug/bpmp/debug/clk/emc";
/// The same module's memory clock, free, and the power modes of a Xavier NX with a stand-in for nvpmodel, which gives
/// the GPU the limits of the mode as the real one does, and refuses mode 5 for want of a reboot.
inline void add_tegra_memory_and_modes(const Tree& tree) {
  const std::string emc = kTegraEmc;
  tree.put(emc + "/rate", "204000000");
  tree.put(emc + "/min_rate", "204000000");
  tree.put(emc + "/max_rate", "2133000000");
  tree.put(emc + "/mrq_rate_locked", "0");
  tree.put("/sys/kernel/debug/bpmp/debug/emc/possible_rates", "204000 665600 2133000 3199000 (kHz)");
  std::string modes = "< PARAM TYPE=FILE NAME=GPU >\nMAX_FREQ /sys/devices/17000000.gv11b/devfreq\n\n";
  int id = 0;
  for (const char* name :
       {"MODE_15W_2CORE", "MODE_15W_4CORE", "MODE_15W_6CORE", "MODE_10W_2CORE", "MAXN", "MODE_20W_6CORE"})
    modes += "< POWER_MODEL ID=" + std::to_string(id++) + " NAME=" + name +
             " >\nCPU_ONLINE CORE_0 1\nGPU MAX_FREQ 1109250000\n\n";
  tree.put("/etc/nvpmodel.conf", modes + "< PM_CONFIG DEFAULT=2 >");
  tree.put("/var/lib/nvpmodel/status", "pmode:0002");
  tree.put("/usr/sbin/nvpmodel",
           "#!/bin/sh\nroot=\"${0%/usr/sbin/nvpmodel}\"\n[ \"$1\" = -m ] && [ \"$2\" != 5 ] || exit 0\n"
           "printf 'pmode:%04d\\n' \"$2\" > \"$root/var/lib/nvpmodel/status\"\n"
           "echo 306000000 > \"$root" +
               std::string(kTegraGpu) +
               "/min_freq\"\n"
               "echo 1122000000 > \"$root" +
               std::string(kTegraGpu) + "/max_freq\"");
  std::filesystem::permissions(tree.real("/usr/sbin/nvpmodel"), std::filesystem::perms::owner_all);
}

inline constexpr const char* kAmdCard = "/sys/class/drm/card0/device";
/// An Instinct-like card in automatic mode with a power cap below its maximum.
inline void add_amdgpu(const Tree& tree) {
  const std::string card = kAmdCard;
  tree.put(card + "/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c1:00.0");
  tree.put(card + "/power_dpm_force_performance_level", "auto");
  tree.put(card + "/pp_dpm_sclk", "S: 19Mhz *\n0: 500Mhz\n1: 800Mhz\n2: 1200Mhz\n3: 1700Mhz");
  tree.put(card + "/pp_dpm_mclk", "0: 400Mhz\n1: 1600Mhz *");
  tree.put(card + "/hwmon/hwmon3/power1_cap", "250000000");
  tree.put(card + "/hwmon/hwmon3/power1_cap_min", "0");
  tree.put(card + "/hwmon/hwmon3/power1_cap_max", "300000000");
  tree.put(card + "/hwmon/hwmon3/power1_cap_default", "300000000");
  tree.put("/sys/class/drm/card0-DP-1/status", "disconnected");
}
inline constexpr const char* kInstinctCard = "/sys/class/drm/card1/device";
/// An MI250X: three levels, and a ceiling anywhere between. Its files take every write: after one, the last that was
/// written to pp_od_clk_voltage is "c".
inline void add_instinct(const Tree& tree) {
  const std::string card = kInstinctCard;
  tree.put(card + "/uevent", "DRIVER=amdgpu\nPCI_ID=1002:7408\nPCI_SLOT_NAME=0000:c9:00.0");
  tree.put(card + "/power_dpm_force_performance_level", "auto");
  tree.put(card + "/pp_dpm_sclk", "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz");
  tree.put(card + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: 1700Mhz\nOD_MCLK:\n1: 1600Mhz");
  tree.put(card + "/hwmon/hwmon4/power1_cap", "560000000");
  tree.put(card + "/hwmon/hwmon4/power1_cap_min", "0");
  tree.put(card + "/hwmon/hwmon4/power1_cap_max", "560000000");
}
/// What of a card's files stands for its state: which levels are allowed is "all" for a listing as for all numbers.
inline std::map<std::string, std::string> amdgpu_state(const Tree& tree) {
  auto files = tree.contents();
  for (auto& [path, text] : files) {
    if (path.ends_with("pp_dpm_sclk") && (text.find("Mhz") != std::string::npos || text == "0 1 2 3")) text = "all";
    if (path.ends_with("pp_dpm_mclk") && (text.find("Mhz") != std::string::npos || text == "0 1")) text = "all";
    // a ceiling holds in one performance level only
    const auto level = files.find(path.substr(0, path.rfind('/')) + "/power_dpm_force_performance_level");
    if (path.ends_with("pp_od_clk_voltage") && level->second != "perf_determinism") text = "none";
  }
  return files;
}

/// Two policies of four CPUs, powersave, 0.8 to 3.6 GHz.
inline void add_cpufreq(const Tree& tree, bool listed = true) {
  for (const char* policy : {"policy0", "policy4"}) {
    const std::string folder = std::string("/sys/devices/system/cpu/cpufreq/") + policy;
    tree.put(folder + "/cpuinfo_min_freq", "800000");
    tree.put(folder + "/cpuinfo_max_freq", "3600000");
    tree.put(folder + "/scaling_min_freq", "800000");
    tree.put(folder + "/scaling_max_freq", "3600000");
    tree.put(folder + "/scaling_governor", "powersave");
    tree.put(folder + "/scaling_available_governors", "performance powersave");
    if (listed) tree.put(folder + "/scaling_available_frequencies", "3600000 2800000 2000000 1400000 800000");
  }
}

}  // namespace control_trees
