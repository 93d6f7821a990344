// Sensors read a quantity with a time stamp and describe what their readings mean. power/ does not depend on device/; a
// sensor and its device have the same UUID or PCI address.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// Relation of a power or energy reading to the true power P(t).
enum class SensorKind {
  cumulative_energy,    ///< a counter in joules; steps of `unit_step` every `update_period`
  instantaneous_power,  ///< P(t - lag) at each update
  windowed_power,       ///< mean of P over [t - lag - window, t - lag] (boxcar) at each update
  exponential_power,    ///< first-order lag with time constant `window` (Kepler and Maxwell GPUs)
};
std::string to_string(SensorKind kind);

/// The part of the machine that a sensor measures.
enum class SensorScope { chip, gpu, module, rail, package, node };

struct SensorInfo {
  std::string id;    ///< "nvml:0/energy", "rapl:package-0", "powersensor3:/dev/ttyACM0"
  std::string name;  ///< display name
  SensorKind kind = SensorKind::instantaneous_power;
  SensorScope scope = SensorScope::gpu;
  std::string uuid, pci_address;  ///< of its device; empty if it has none
  std::string driver;             ///< driver version; a calibration is valid for one GPU under one driver
  // Properties from the calibration of this GPU, else those known for its type. 0: unknown.
  double unit_step = 0;      ///< J for energy, W for power
  double update_period = 0;  ///< s
  double window = 0;         ///< s
  double lag = 0;            ///< s
  double read_cost = 0;      ///< s of host time per read
  /// Relative standard deviation between measurements of the same load on this GPU, each of which is steady in itself.
  /// GPUs have lasting states (temperature, the clock and voltage that adaptive clocking finds) that a single
  /// measurement does not reveal.
  double repeatability = 0;
  double gain = 1, offset = 0;  ///< true = gain * reading + offset, from calibration with an external meter
  /// Uncertainty of that calibration: relative standard deviations of the gain, and of the power at `level` W, where
  /// gain and level are independent (the middle of the powers that were compared).
  double gain_error = 0, level = 0, level_error = 0;
  // Bounds of plausible readings; 0: unknown. A reading outside is a failure of the sensor.
  double min_power = 0, most_power = 0;  ///< W
  /// The last digits change under any load; a constant reading is a failure of the sensor.
  bool always_fluctuates = false;
  bool calibrated = false;
};

/// One reading on the host's time axis (base/clock.hpp: host_seconds()).
struct Reading {
  double time = 0;   ///< s; when the value was current if the sensor reports that, else when it was read
  double value = 0;  ///< J or W, after applying gain and offset
};

/// Outcome of a read.
enum class ReadStatus { ok, no_new_data, not_supported, failed };

/// A power or energy sensor. read() must be called by one thread at a time, and not by the thread that launches.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual const SensorInfo& info() const = 0;
  /// Replaces the properties by those from a calibration.
  virtual void set_info(const SensorInfo& info) = 0;
  /// Appends the readings that are new since the last call (one, or the contents of a buffer). Readings that the
  /// hardware flags as unsupported or failed are left out.
  virtual ReadStatus read(std::vector<Reading>& out) = 0;
  /// Discards buffered readings: the next read() returns only newer ones.
  virtual void restart() {}
  /// Message of the last failure.
  virtual std::string last_error() const { return {}; }
};

/// State of a GPU apart from its energy; recorded with every measurement.
struct DeviceState {
  std::optional<double> core_clock_mhz, memory_clock_mhz, temperature_c, core_voltage_v, power_w, power_limit_w;
  /// Reasons for the clocks: power_cap, thermal, hardware_slowdown, power_brake, idle, sync_boost ...
  std::vector<std::string> clock_reasons;
  /// Share of the time since the last read in which the firmware reduced the clocks; nullopt if it does not count that.
  std::optional<double> throttled_share;
  /// Process ids of other compute processes on the device; nullopt if unknown.
  std::optional<std::vector<int>> foreign_processes;
};

class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  virtual DeviceState read() = 0;
};

/// Returns the sensors found on this machine, by id. Does not throw.
std::vector<SensorInfo> list_sensors();
/// Opens a sensor by id; "nvml:0" or "nvml:GPU-<uuid>" selects the GPU's best sensor. Throws UserError, which lists the
/// available sensors, for an unknown id.
std::unique_ptr<Sensor> open_sensor(const std::string& id);
/// Returns the sensors of a device, best first (energy counter, sample buffer, instantaneous, averaged); empty if there
/// are none. `looked_for`, if given, receives what was tried and why it is unavailable.
std::vector<std::unique_ptr<Sensor>> sensors_for_device(const std::string& uuid, const std::string& pci_address,
                                                        bool is_cpu, std::vector<std::string>* looked_for = nullptr);
/// Returns the monitor of a device; nullptr if the driver offers none.
std::unique_ptr<DeviceMonitor> monitor_for_device(const std::string& uuid, const std::string& pci_address);
/// Returns the monitor of the device of a control, by the control's reopen_id(); nullptr if there is none.
std::unique_ptr<DeviceMonitor> monitor_for_control(const std::string& id);
/// Waits until the monitor reports this core clock; returns the time in s that it took. nullopt if it does not without
/// load, within 0.1 s.
std::optional<double> seconds_until_core_clock(DeviceMonitor& monitor, double mhz, double tolerance);

/// True if two sensors belong to one device, or if one contains the other: a node contains its parts, a package its
/// cores. (RAPL's memory is not part of the package.)
bool sensors_overlap(const SensorInfo& a, const SensorInfo& b);

/// Throws UserError if two of the sensors overlap.
void require_disjoint(const std::vector<std::unique_ptr<Sensor>>& sensors);

/// Returns the ids of sensors that together cover this machine, each device once, by its best sensor.
std::vector<std::string> sensors_of_machine();

/// Returns the present core voltage of a GPU in V; nullopt if unknown. NVIDIA: from `nvidia-smi -q -d VOLTAGE` (driver
/// 510 and later, on some GPUs; NVML has no such call); $ERGOTUNE_NVIDIA_SMI names another program. Tegra: from the
/// regulator of the GPU. Takes some tens of milliseconds. `uuid` may be empty.
std::optional<double> read_core_voltage(const std::string& uuid);

/// Returns the graphics voltage in V from the output of nvidia-smi; nullopt for "N/A".
std::optional<double> voltage_in(const std::string& nvidia_smi_output);

}  // namespace ergotune
