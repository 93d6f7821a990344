// Controls set execution parameters: core clock, memory clock, power limit. No control is ever touched except
// through a ControlSession (power/guardian/guardian.hpp), which has a journal on disk and a living guardian before the
// first change.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

enum class ControlQuantity { core_clock_mhz, memory_clock_mhz, power_limit_w };
std::string to_string(ControlQuantity quantity);
/// The reverse; nullopt when there is no such quantity.
std::optional<ControlQuantity> control_quantity_from(std::string_view name);
/// "MHz" or "W".
std::string quantity_unit(ControlQuantity quantity);

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
  /// Where it is not supported: why, in the driver's words; may be empty.
  std::string why_not;
};

/// One thing that must be put back, as text that survives this process: "nvml-power-limit" with its old
/// value, or "sysfs" with path and old text. Made by a control before it changes anything.
struct RestoreStep {
  std::string kind;
  std::string target;
  std::string value;
  /// Needed only after this quantity was changed (locked clocks are reset only if we locked them); nullopt:
  /// after any.
  std::optional<ControlQuantity> quantity = std::nullopt;
};

/// Where controls look. The command takes it from the environment (ERGOTUNE_NVML, ERGOTUNE_SYSFS_ROOT,
/// ERGOTUNE_STATE_DIR); the root helper and the guardian take it from their command lines only.
struct ControlEnvironment {
  std::string nvml_library;                ///< path or name; empty: the system's libnvidia-ml.so.1
  std::filesystem::path sysfs_root = "/";  ///< /sys and /proc lie below it
  std::filesystem::path state_folder;      ///< journals and locks
  std::string helper_socket;               ///< ergotuned's socket; empty: no helper is asked
  static ControlEnvironment from_environment();
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
  /// A sign that another process holds a lock or has changed a setting that cannot be read and so cannot be
  /// restored, in words; empty when none is seen.
  virtual std::string foreign_setting() = 0;
  /// The same from what a GPU shows only under load: `reasons` (DeviceState::clock_reasons) and the clock that ran,
  /// seen before this control has set anything. Empty where that tells nothing.
  virtual std::string foreign_under_load(const std::vector<std::string>& reasons, std::optional<double> ran_mhz) const;
  /// True where foreign_setting() may overlook a lock while the GPU is idle: then foreign_under_load() is to be asked
  /// before the first change.
  virtual bool may_hide_a_lock() const { return false; }
  /// Sets; the request is checked against range() first.
  virtual ControlResult set(ControlQuantity quantity, double value) = 0;
  /// Reads back what was set: ok where `value` is still set or unknown (locked clocks have no getter); failed,
  /// with both values in words, where it is something else by now.
  virtual ControlResult check(ControlQuantity quantity, double value);
  /// How far a clock that runs as asked may be read from what was asked, relative.
  virtual double clock_tolerance() const { return 0.01; }
  /// Why this control will set nothing any more (the helper is gone); empty while it will.
  virtual std::string lost() const { return {}; }
  /// Carries out one restore step of this control and verifies it. A step that this control could not have
  /// made (an unknown kind, a path outside the device) is refused: journals are files, and files can be
  /// forged.
  virtual ControlResult restore(const RestoreStep& step) = 0;

  /// Called with each journalled step of a quantity after its first successful change: may add to the step's value how
  /// the change was made, for what restore() cannot tell afterwards.
  virtual void confirm(RestoreStep&) const {}

  /// The id that finds this device again, whatever the order in which devices are counted: what journals
  /// carry.
  virtual std::string reopen_id() const { return id(); }
  /// Where this control looks; its guardian looks there too.
  virtual ControlEnvironment environment() const { return {}; }
  /// True when another process (ergotuned) keeps lock, journal and guardian; then acquire() and release()
  /// take and return its lease.
  virtual bool guarded_elsewhere() const { return false; }
  virtual ControlResult acquire(const std::string& command, bool take_over);
  virtual ControlResult release();
};

/// The controls that are here, never throws.
std::vector<std::string> list_controls();
std::vector<std::string> list_controls(const ControlEnvironment& environment);
/// Opens by id ("nvml:0", "nvml:GPU-<uuid>", "tegra", "amdgpu:card0", "cpufreq"), directly, without the root
/// helper; throws UserError naming what there is. With ERGOTUNE_FORBID_CONTROLS=1 in the environment every
/// open throws.
std::unique_ptr<Control> open_control(const std::string& id);
std::unique_ptr<Control> open_control(const std::string& id, const ControlEnvironment& environment);
/// The control of a device, or nullptr; `why_not` receives what is missing, in words for the user. Through
/// ergotuned when it is there and allows it, else directly when that is permitted.
std::unique_ptr<Control> control_for_device(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                                            std::string* why_not = nullptr);
/// The same for a control given by id (`--control ID`): nullptr and `why_not` when it is there but may not be
/// used; throws UserError when there is no such control.
std::unique_ptr<Control> usable_control(const std::string& id, std::string* why_not = nullptr);

/// True when this process must not touch any control (ERGOTUNE_FORBID_CONTROLS=1): for machines that are not
/// ours.
bool controls_forbidden();
/// Throws the UserError of a forbidden control.
void require_controls_allowed();

/// Checks a value against a range: ok, or not_supported, or invalid_value naming the nearest values.
ControlResult check_value(ControlQuantity quantity, const ControlRange& range, double value);
/// The supported value nearest to `value`.
double nearest_value(const ControlRange& range, double value);

/// True when they agree to `tolerance` or half a usual clock step (7.5 MHz), whichever is more.
bool same_clock(double requested_mhz, double ran_mhz, double tolerance = 0.01);
/// "asked 1410 MHz, ran 1275 MHz, power cap": the clock that was requested against the one that was read
/// under load; empty when it is the same_clock(). `reasons` are DeviceState::clock_reasons ("power_cap") or their
/// words: why it ran slower. What ran faster was not throttled, and has none.
std::string describe_clock_outcome(double requested_mhz, double ran_mhz, const std::vector<std::string>& reasons,
                                   double tolerance = 0.01);

/// What is to be set together, by quantity.
using ControlSetting = std::map<ControlQuantity, double>;
/// Positions of `settings` in an order that changes clocks as seldom as possible: equal settings together,
/// the current one first, memory clocks (slow to change) changed least, then power limits, then core clocks.
/// Stable.
std::vector<std::size_t> order_by_setting(const std::vector<ControlSetting>& settings, const ControlSetting& current);

}  // namespace ergotune
