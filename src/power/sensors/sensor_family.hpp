// A family of sensors: what one driver interface offers. sensor_registry.cpp holds the table of families.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "power/sensors/sensor.hpp"

namespace ergotune {

class SensorFamily {
 public:
  virtual ~SensorFamily() = default;
  /// What ids begin with, up to the colon: "nvml" for "nvml:0/energy". Ids may also be the bare name
  /// ("tegra").
  virtual std::string name() const = 0;
  /// The sensors that are here; a family that is absent says why in `notes`. Never throws.
  virtual std::vector<SensorInfo> list(std::vector<std::string>& notes) = 0;
  /// Opens one of its ids; throws UserError naming what there is.
  virtual std::unique_ptr<Sensor> open(const std::string& id) = 0;
  /// The sensors of a device, best first; says in `notes` what was looked for in vain. Never throws.
  virtual std::vector<std::unique_ptr<Sensor>> for_device(const std::string& uuid, const std::string& pci_address,
                                                          bool is_cpu, std::vector<std::string>& notes) = 0;
  /// The monitor of a device; nullptr when this family has none.
  virtual std::unique_ptr<DeviceMonitor> monitor(const std::string& uuid, const std::string& pci_address) {
    (void)uuid;
    (void)pci_address;
    return nullptr;
  }
  /// The monitor of what a control of this family's driver sets, by the control's id; nullptr for others' controls.
  virtual std::unique_ptr<DeviceMonitor> monitor_of(const std::string& control) {
    (void)control;
    return nullptr;
  }
};

std::unique_ptr<SensorFamily> make_nvml_family();
std::unique_ptr<SensorFamily> make_command_family();
/// The clock of the CPU; nullptr where there are no frequency policies.
std::unique_ptr<DeviceMonitor> make_cpufreq_monitor();
/// The monitor of an NVML GPU: by UUID or PCI address, or by name ("0", a UUID).
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& name);
std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& uuid, const std::string& pci_address);

}  // namespace ergotune
