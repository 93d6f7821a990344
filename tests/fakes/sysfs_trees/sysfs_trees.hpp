// Trees of /sys with known physics below a temporary root: both Jetson layouts, amdgpu, RAPL with its wrap,
// Cray's pm_counters. The power is a known function of time, so that its energy is known exactly.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.hpp"

namespace ergotune::test {

/// P(t) = base + amplitude * sin(2 pi t / period), and its integral.
struct PowerCurve {
  double base = 100, amplitude = 40, period = 0.3;  ///< W, W, s
  double power(double t) const { return base + amplitude * std::sin(2 * M_PI * t / period); }
  double energy(double from, double to) const {
    const double w = 2 * M_PI / period;
    return base * (to - from) + amplitude / w * (std::cos(w * from) - std::cos(w * to));
  }
};

/// A folder that plays "/", removed with the object. ERGOTUNE_SYSFS_ROOT points to it meanwhile.
class SysfsTree {
 public:
  SysfsTree() {
    std::string name = (std::filesystem::temp_directory_path() / "ergotune-sysfs-XXXXXX").string();
    root_ = mkdtemp(name.data());
    setenv("ERGOTUNE_SYSFS_ROOT", root_.c_str(), 1);
  }
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;
  ~SysfsTree() {
    unsetenv("ERGOTUNE_SYSFS_ROOT");
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  std::filesystem::path real(const std::string& path) const { return root_ / path.substr(1); }
  /// Whole or not at all, as a read of sysfs is.
  void put(const std::string& path, const std::string& text) {
    const auto file = real(path);
    std::filesystem::create_directories(file.parent_path());
    const auto draft = file.string() + ".draft";
    std::ofstream(draft) << text;
    std::filesystem::rename(draft, file);
  }
  void put(const std::string& path, long long number) { put(path, std::to_string(number) + "\n"); }
  void remove(const std::string& path) { std::filesystem::remove_all(real(path)); }

 private:
  std::filesystem::path root_;
};

/// Calls `update` from a thread of its own, again and again, until it is destroyed: the hardware that goes on
/// while it is read.
class Writer {
 public:
  explicit Writer(std::function<void()> update)
      : thread_([this, update = std::move(update)] {
          while (!stop_) update();
        }) {}
  ~Writer() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Jetson AGX Orin: two INA3221 under hwmon, devfreq and a thermal zone.
struct OrinTree : SysfsTree {
  static constexpr const char* kChip = "/sys/bus/i2c/drivers/ina3221/1-0040";
  static constexpr const char* kOther = "/sys/bus/i2c/drivers/ina3221/1-0041";
  OrinTree() {
    const char* labels[] = {"VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"};
    for (int channel = 1; channel <= 3; ++channel)
      put(std::string(kChip) + "/hwmon/hwmon1/in" + std::to_string(channel) + "_label", labels[channel - 1]);
    put(std::string(kChip) + "/hwmon/hwmon1/update_interval", 1);
    put(std::string(kOther) + "/hwmon/hwmon2/in1_label", "NC");
    put("/sys/class/devfreq/17000000.gpu/device/of_node/name", std::string("gpu\0", 4));
    put("/sys/class/devfreq/17000000.gpu/cur_freq", 1300500000LL);
    put("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
    put("/sys/class/thermal/thermal_zone0/temp", 41000);
    put("/sys/class/thermal/thermal_zone1/type", "gpu-thermal\n");
    put("/sys/class/thermal/thermal_zone1/temp", 52500);
    rail(1, 10);
    rail(2, 5);
    rail(3, 8);
  }
  /// The rail draws `watts` at 19.2 V, in steps of 1 mA.
  void rail(int channel, double watts) {
    const std::string folder = std::string(kChip) + "/hwmon/hwmon1/";
    put(folder + "in" + std::to_string(channel) + "_input", 19200);
    put(folder + "curr" + std::to_string(channel) + "_input", std::llround(watts / 19.2 * 1000));
  }
};

/// Jetson TX2 and Xavier with the older iio driver; names of two rails only in the device tree.
struct XavierTree : SysfsTree {
  static constexpr const char* kChip = "/sys/bus/i2c/drivers/ina3221x/1-0040";
  XavierTree() {
    const std::string device = std::string(kChip) + "/iio:device0/";
    put(device + "rail_name_0", "GPU");
    put(std::string(kChip) + "/of_node/channel@1/label", std::string("CPU\0", 4));
    put(std::string(kChip) + "/of_node/input@2/label", std::string("SOC\0", 4));
    put("/sys/class/devfreq/17000000.gv11b/device/of_node/name", "gv11b");
    put("/sys/class/devfreq/17000000.gv11b/cur_freq", 1377000000LL);
    put("/sys/class/thermal/thermal_zone3/type", "GPU-therm");
    put("/sys/class/thermal/thermal_zone3/temp", 47000);
    power(0, 12);
    put(device + "in_current1_input", 500);
    put(device + "in_voltage1_input", 12000);
    power(2, 3);
  }
  void power(int channel, double watts) {
    put(std::string(kChip) + "/iio:device0/in_power" + std::to_string(channel) + "_input", std::llround(watts * 1000));
  }
};

struct AmdgpuTree : SysfsTree {
  AmdgpuTree() {
    for (const int card : {0, 1}) {
      const std::string device = "/sys/class/drm/card" + std::to_string(card) + "/device/";
      put(device + "uevent", std::string("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:") + (card == 0 ? "03" : "C3") + ":00.0\n");
      put(device + "hwmon/hwmon" + std::to_string(3 + card) + "/name", "amdgpu\n");
    }
    put("/sys/class/drm/card0-DP-1/status", "connected");
    const std::string hwmon = "/sys/class/drm/card0/device/hwmon/hwmon3/";
    put(hwmon + "freq1_input", 2100000000LL);
    put(hwmon + "freq2_input", 1000000000LL);
    put(hwmon + "temp1_input", 61000);
    put(hwmon + "power1_cap", 300000000LL);
    put("/sys/class/drm/card1/device/hwmon/hwmon4/power1_input", 90000000LL);
    power(150);
  }
  void power(double watts) {
    put("/sys/class/drm/card0/device/hwmon/hwmon3/power1_average", std::llround(watts * 1e6));
  }
};

/// Two packages, core and dram parts. Counters wrap at a range smaller than usual, so that a test sees it.
struct RaplTree : SysfsTree {
  static constexpr long long kRange = 2'000'000'000;  ///< uJ
  RaplTree() {
    zone("intel-rapl:0", "package-0");
    zone("intel-rapl:0:0", "core");
    zone("intel-rapl:0:1", "dram");
    zone("intel-rapl:1", "package-1");
    zone("intel-rapl:1:0", "core");
    zone("intel-rapl:10", "psys");
    zone("intel-rapl-mmio:0", "package-0");
    put("/sys/class/powercap/intel-rapl/enabled", 1);
  }
  void zone(const std::string& folder, const std::string& name) {
    put("/sys/class/powercap/" + folder + "/name", name + "\n");
    put("/sys/class/powercap/" + folder + "/max_energy_range_uj", kRange);
    put("/sys/class/powercap/" + folder + "/energy_uj", 0);
  }
  /// The counter after `joules` in all, in its unit of 61 uJ.
  void energy(const std::string& folder, double joules) {
    const long long microjoules = static_cast<long long>(joules * 1e6 / 61) * 61;
    put("/sys/class/powercap/" + folder + "/energy_uj", microjoules % kRange);
  }
};

/// Cray EX: the files of one scan are written one after the other, freshness last, as the node controller does.
struct CrayTree : SysfsTree {
  explicit CrayTree(int accelerators, bool with_times) : accelerators_(accelerators), with_times_(with_times) {
    put("/sys/cray/pm_counters/version", "2");
    put("/sys/cray/pm_counters/raw_scan_hz", "10");
    line("cpu_energy", 0, "J", 0);
    line("power", 500, "W", 0);
    scan(0, 0, 0);
  }
  /// A scan at `wall` (s since the epoch): node and accelerator energy in J.
  void scan(double node, double accelerator, double wall) {
    line("energy", node, "J", wall);
    for (int i = 0; i < accelerators_; ++i) line("accel" + std::to_string(i) + "_energy", accelerator, "J", wall);
    put("/sys/cray/pm_counters/freshness", ++freshness_);
  }
  void line(const std::string& file, double value, const char* unit, double wall) {
    std::string text = std::to_string(std::llround(value)) + " " + unit;
    if (with_times_) text += " " + std::to_string(std::llround(wall * 1e6)) + " us";
    put("/sys/cray/pm_counters/" + file, text + "\n");
  }

 private:
  int accelerators_;
  bool with_times_;
  long long freshness_ = 0;
};

}  // namespace ergotune::test
