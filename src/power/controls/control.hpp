// Controls set execution parameters: core clock, memory clock, power limit. They may only be used through a
// ControlSession (power/guardian/guardian.hpp), which has a journal on disk and a running guardian before the first
// change.
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
/// Returns nullopt for an unknown name.
std::optional<ControlQuantity> control_quantity_from(std::string_view name);
/// "MHz" or "W".
std::string quantity_unit(ControlQuantity quantity);

/// Outcome of a request. Not an exception, since it becomes the status of a configuration.
enum class ControlStatus { ok, not_supported, no_permission, invalid_value, device_lost, timeout, failed };
std::string to_string(ControlStatus status);
struct ControlResult {
  ControlStatus status = ControlStatus::ok;
  std::string message;
  bool ok() const { return status == ControlStatus::ok; }
};

/// The values that the hardware supports for a quantity.
struct ControlRange {
  bool supported = false;
  /// All values in ascending order if they are discrete; empty: every value in [low, high].
  std::vector<double> values;
  double low = 0, high = 0;
  /// The value that is set now; nullopt if it cannot be read (locked clocks).
  std::optional<double> current;
  std::optional<double> default_value;
  /// Driver's reason why the quantity is not supported; may be empty.
  std::string why_not;
};

/// A setting to restore, as text that outlives the process: "nvml-power-limit" with its old value, or "sysfs" with path
/// and old text. A control creates it before it changes anything.
struct RestoreStep {
  std::string kind;
  std::string target;
  std::string value;
  /// Needed only after this quantity was changed (locked clocks are reset only if this session locked them); nullopt:
  /// needed after any change.
  std::optional<ControlQuantity> quantity = std::nullopt;
};

/// Where controls find libraries and files. The command takes these from the environment (ERGOTUNE_NVML,
/// ERGOTUNE_SYSFS_ROOT, ERGOTUNE_STATE_DIR); the root helper and the guardian take them from their command lines only.
struct ControlEnvironment {
  std::string nvml_library;                ///< path or name; empty: the system's libnvidia-ml.so.1
  std::filesystem::path sysfs_root = "/";  ///< root of /sys and /proc
  std::filesystem::path state_folder;      ///< journals and locks
  std::string helper_socket;               ///< socket of ergotuned; empty: the helper is not used
  static ControlEnvironment from_environment();
};

/// The controls of one device. Requests return a ControlResult and do not throw.
class Control {
 public:
  virtual ~Control() = default;
  /// "nvml:0", "tegra", "amdgpu:card0", "cpufreq".
  virtual std::string id() const = 0;
  virtual std::string device_key() const = 0;  ///< UUID or path: identifies the device in journals and leases
  virtual ControlRange range(ControlQuantity quantity) = 0;
  /// Core clocks supported at a memory clock (NVIDIA: one depends on the other).
  virtual std::vector<double> core_clocks_at(double memory_clock_mhz) = 0;
  /// True if this process may change settings.
  virtual bool permitted() = 0;
  /// Reads all settings that must be restored after any use of this control.
  virtual std::vector<RestoreStep> snapshot() = 0;
  /// Returns a description of a sign that another process holds a lock, or has changed a setting that cannot be read
  /// and so cannot be restored; empty if there is none.
  virtual std::string external_lock_sign() = 0;
  /// Does the same from what a GPU shows only under load, before this control has set anything: `reasons`
  /// (DeviceState::clock_reasons) and the clock at which it ran. Empty if these show nothing.
  virtual std::string foreign_under_load(const std::vector<std::string>& reasons, std::optional<double> ran_mhz) const;
  /// True if external_lock_sign() may overlook a lock while the GPU is idle. Then foreign_under_load() must be called
  /// before the first change.
  virtual bool may_overlook_lock() const { return false; }
  /// Sets a quantity, after checking the value against range().
  virtual ControlResult set(ControlQuantity quantity, double value) = 0;
  /// Reads back a quantity: ok if `value` is still set or cannot be read (locked clocks); failed, with both values in
  /// the message, if it has changed.
  virtual ControlResult check(ControlQuantity quantity, double value);
  /// Relative deviation up to which a measured clock counts as the requested one.
  virtual double clock_tolerance() const { return 0.01; }
  /// Reason why this control cannot set anything any more (such as the end of the helper); empty if it can.
  virtual std::string lost() const { return {}; }
  /// Carries out one restore step of this control and verifies it. Rejects steps that this control cannot have created
  /// (an unknown kind, a path outside of the device), since journals are files and could be forged.
  virtual ControlResult restore(const RestoreStep& step) = 0;

  /// Called for each journalled step of a quantity after its first successful change. May record in the step's value
  /// how the change was made, if restore() cannot determine that later.
  virtual void confirm(RestoreStep&) const {}

  /// An id that identifies this device independently of enumeration order; used in journals.
  virtual std::string reopen_id() const { return id(); }
  /// The environment of this control, which its guardian uses as well.
  virtual ControlEnvironment environment() const { return {}; }
  /// True if another process (ergotuned) keeps lock, journal and guardian; then acquire() and release() take and return
  /// its lease.
  virtual bool has_remote_guardian() const { return false; }
  virtual ControlResult acquire(const std::string& command, bool take_over);
  virtual ControlResult release();
};

/// Returns the ids of the controls found on this machine. Does not throw.
std::vector<std::string> list_controls();
std::vector<std::string> list_controls(const ControlEnvironment& environment);
/// Opens a control by id ("nvml:0", "nvml:GPU-<uuid>", "tegra", "amdgpu:card0", "cpufreq") directly, without the root
/// helper. Throws UserError, which lists the available controls, for an unknown id, and always if the environment has
/// ERGOTUNE_FORBID_CONTROLS=1.
std::unique_ptr<Control> open_control(const std::string& id);
std::unique_ptr<Control> open_control(const std::string& id, const ControlEnvironment& environment);
/// Returns the control of a device: through ergotuned if it runs and allows it, else directly if that is permitted.
/// Otherwise returns nullptr, and `why_not` receives the reason for users.
std::unique_ptr<Control> control_for_device(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                                            std::string* why_not = nullptr);
/// Does the same for a control given by id (`--control ID`): returns nullptr and sets `why_not` if the control exists
/// but may not be used. Throws UserError if it does not exist.
std::unique_ptr<Control> usable_control(const std::string& id, std::string* why_not = nullptr);

/// True if this process must not use any control (ERGOTUNE_FORBID_CONTROLS=1); for shared machines.
bool controls_forbidden();
/// Throws UserError if controls are forbidden.
void require_controls_allowed();

/// Checks a value against a range. Returns ok, not_supported, or invalid_value with the nearest values in the message.
ControlResult check_value(ControlQuantity quantity, const ControlRange& range, double value);
/// The supported value nearest to `value`.
double nearest_value(const ControlRange& range, double value);

/// True if the clocks agree within `tolerance`, or within half of a usual clock step (7.5 MHz) if that is larger.
bool same_clock(double requested_mhz, double ran_mhz, double tolerance = 0.01);
/// Returns "asked 1410 MHz, ran 1275 MHz, power cap": the requested clock and the one measured under load; empty if
/// they are the same_clock(). `reasons`: DeviceState::clock_reasons ("power_cap") or their text. If the clock was
/// higher than requested, reasons are left out, since nothing throttled it.
std::string describe_clock_outcome(double requested_mhz, double ran_mhz, const std::vector<std::string>& reasons,
                                   double tolerance = 0.01);

/// Values to be set together, by quantity.
using ControlSetting = std::map<ControlQuantity, double>;
/// Returns an order of `settings` that changes clocks as rarely as possible: equal settings together, the current one
/// first, and memory clocks (slow to change) changed least often, then power limits, then core clocks. Stable.
std::vector<std::size_t> order_by_setting(const std::vector<ControlSetting>& settings, const ControlSetting& current);

}  // namespace ergotune
