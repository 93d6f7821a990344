// Controls set execution parameters: core clock, memory clock, power limit. No control is ever touched except through
// a ControlSession (power/guardian.hpp), which has a journal on disk and a living guardian before the first change.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

enum class ControlQuantity { core_clock_mhz, memory_clock_mhz, power_limit_w };
std::string to_string(ControlQuantity quantity);

/// What came of a request: never an exception, because it becomes a configuration's status.
enum class ControlStatus { ok, not_supported, no_permission, invalid_value, device_lost, timeout, failed };
std::string to_string(ControlStatus status);
struct ControlResult {
  ControlStatus status = ControlStatus::ok;
  std::string message;
  bool ok() const { return status == ControlStatus::ok; }
};

/// The values a quantity can take, listed from the hardware.
struct ControlRange {
  bool supported = false;
  /// Every value, ascending, where they are discrete; else empty and [low, high] holds.
  std::vector<double> values;
  double low = 0, high = 0;
  /// What is set now, where the hardware tells (locked clocks have no getter).
  std::optional<double> current;
  std::optional<double> default_value;
};

/// One thing that must be put back, as text that survives this process: "nvml-power-limit" with its old value, or
/// "sysfs" with path and old text. Made by a control before it changes anything.
struct RestoreStep {
  std::string kind;
  std::string target;
  std::string value;
};

/// The controls of one device.
class Control {
 public:
  virtual ~Control() = default;
  /// "nvml:0", "tegra", "amdgpu:card0", "cpufreq".
  virtual std::string id() const = 0;
  virtual std::string device_key() const = 0;  ///< UUID or path: names the device in journals and leases
  virtual ControlRange range(ControlQuantity quantity) = 0;
  /// Supported core clocks at a memory clock (NVIDIA: they depend on each other).
  virtual std::vector<double> core_clocks_at(double memory_clock_mhz) = 0;
  /// True when a setter would be allowed.
  virtual bool permitted() = 0;
  /// Everything that must be put back after any use of this control, read now.
  virtual std::vector<RestoreStep> snapshot() = 0;
  /// A sign that somebody else holds a lock or has changed a setting, in words; empty when none is seen.
  virtual std::string foreign_setting() = 0;
  /// Sets; the request is checked against range() first.
  virtual ControlResult set(ControlQuantity quantity, double value) = 0;
  /// Carries out one restore step of this control and verifies it.
  virtual ControlResult restore(const RestoreStep& step) = 0;
};

/// The controls that are here, never throws.
std::vector<std::string> list_controls();
/// Opens by id; throws UserError naming what there is.
std::unique_ptr<Control> open_control(const std::string& id);
/// The control of a device, or nullptr; `why_not` receives what is missing, in words for the user.
std::unique_ptr<Control> control_for_device(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                                            std::string* why_not = nullptr);

}  // namespace ergotune
