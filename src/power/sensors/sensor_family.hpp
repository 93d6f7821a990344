// A family of sensors: those offered by one driver interface. sensor_registry.cpp holds the table of families. Also
// what families share: the offset of a driver's clock, and sensors that read small text files.
#pragma once

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/sysfs.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// Returns the offset in s from the least disturbed of five comparisons. A process may be preempted between reading the
/// two clocks, which would shift every reading by that time.
template <class Clock>
double offset_from_host(Clock clock) {
  double offset = 0, narrowest = INFINITY;
  for (int look = 0; look < 5; ++look) {
    const double before = host_seconds(), there = clock(), after = host_seconds();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    offset = there - 0.5 * (before + after);
  }
  return offset;
}

class SensorFamily {
 public:
  virtual ~SensorFamily() = default;
  /// Prefix of the ids before the colon: "nvml" for "nvml:0/energy". The bare name may be an id, too ("tegra").
  virtual std::string name() const = 0;
  /// Returns the sensors found on this machine; if the family is unavailable, adds the reason to `notes`. Does not
  /// throw. Empty for a family whose sensors users name.
  virtual std::vector<SensorInfo> list(std::vector<std::string>& notes) {
    (void)notes;
    return {};
  }
  /// Opens a sensor by id. Throws UserError, which lists the available sensors, for an unknown id.
  virtual std::unique_ptr<Sensor> open(const std::string& id) = 0;
  /// Returns the sensors of a device, best first; adds to `notes` what was searched without success. Does not throw.
  virtual std::vector<std::unique_ptr<Sensor>> for_device(const std::string& uuid, const std::string& pci_address,
                                                          bool is_cpu, std::vector<std::string>& notes) {
    (void)uuid, (void)pci_address, (void)is_cpu, (void)notes;
    return {};
  }
  /// Returns the monitor of a device; nullptr if this family has none.
  virtual std::unique_ptr<DeviceMonitor> monitor(const std::string& uuid, const std::string& pci_address) {
    (void)uuid;
    (void)pci_address;
    return nullptr;
  }
  /// Returns the monitor of the device of a control, by the control's id; nullptr if the control belongs to another
  /// driver.
  virtual std::unique_ptr<DeviceMonitor> monitor_of(const std::string& control) {
    (void)control;
    return nullptr;
  }
};

std::unique_ptr<SensorFamily> make_nvml_family();
std::unique_ptr<SensorFamily> make_command_family();
/// Returns a monitor of the CPU's clock; nullptr if there are no frequency policies.
std::unique_ptr<DeviceMonitor> make_cpufreq_monitor();
/// Return the monitor of an NVML GPU, by name ("0", a UUID), or by UUID or PCI address.
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& name);
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& uuid, const std::string& pci_address);

/// Holds the properties of a sensor and its last failure.
class DescribedSensor : public Sensor {
 public:
  explicit DescribedSensor(SensorInfo info) : info_(std::move(info)) {}
  const SensorInfo& info() const override { return info_; }
  void set_info(const SensorInfo& info) override { info_ = info; }
  std::string last_error() const override { return error_; }

 protected:
  double corrected(double value) const { return info_.gain * value + info_.offset; }
  ReadStatus fail(std::string message) {
    error_ = std::move(message);
    return ReadStatus::failed;
  }
  SensorInfo info_;
  std::string error_;
};

/// A sensor that reads small text files.
class SysfsSensor : public DescribedSensor {
 public:
  SysfsSensor(Sysfs sysfs, SensorInfo info) : DescribedSensor(std::move(info)), sysfs_(std::move(sysfs)) {}

 protected:
  Sysfs sysfs_;
};

/// True if the file exists but this process may not read it.
bool exists_unreadable(const Sysfs& sysfs, const std::filesystem::path& path);

/// Returns the sensor of `list` with this id, or the first one for the bare name of the family ("tegra"). Throws
/// UserError that lists the available sensors, or `notes` as the reasons if there are none.
const SensorInfo& choose_sensor(const std::string& id, const std::string& family, const std::vector<SensorInfo>& list,
                                const std::vector<std::string>& notes);

std::unique_ptr<SensorFamily> make_tegra_family();
std::unique_ptr<SensorFamily> make_amdgpu_family();
std::unique_ptr<SensorFamily> make_rapl_family();
std::unique_ptr<SensorFamily> make_pm_counters_family();
std::unique_ptr<SensorFamily> make_powersensor3_family();
std::unique_ptr<SensorFamily> make_powersensor2_family();

/// One line of a command sensor's output: "seconds watts" (time on the program's own clock, the wall clock or
/// CLOCK_MONOTONIC), or "watts".
struct CommandLine {
  std::optional<double> time;
  double watts = 0;
};
/// Accepts blanks, tabs, commas and semicolons as separators, and "W" after the number. Returns nullopt for other text.
std::optional<CommandLine> parse_command_line(std::string_view line);

}  // namespace ergotune
