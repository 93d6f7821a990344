// A family of sensors: those offered by one driver interface. sensor_registry.cpp holds the table of families. Also
// what families share: the offset of a driver's clock.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
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
  /// throw.
  virtual std::vector<SensorInfo> list(std::vector<std::string>& notes) = 0;
  /// Opens a sensor by id. Throws UserError, which lists the available sensors, for an unknown id.
  virtual std::unique_ptr<Sensor> open(const std::string& id) = 0;
  /// Returns the sensors of a device, best first; adds to `notes` what was searched without success. Does not throw.
  virtual std::vector<std::unique_ptr<Sensor>> for_device(const std::string& uuid, const std::string& pci_address,
                                                          bool is_cpu, std::vector<std::string>& notes) = 0;
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

}  // namespace ergotune
