// Sensors read a quantity with a time stamp, and say what their readings mean. power/ knows nothing of device/: they
// meet by UUID or PCI address.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// How a power or energy reading relates to the true power P(t).
enum class SensorKind {
  cumulative_energy,    ///< a counter in joules; steps of `unit_step` every `update_period`
  instantaneous_power,  ///< P(t - lag) at each update
  windowed_power,       ///< mean of P over [t - lag - window, t - lag] (boxcar) at each update
  exponential_power,    ///< first-order lag with time constant `window` (Kepler and Maxwell GPUs)
};
std::string to_string(SensorKind kind);

/// What the sensor's reading covers.
enum class SensorScope { chip, gpu, module, rail, package, node };
std::string to_string(SensorScope scope);

struct SensorInfo {
  std::string id;    ///< "nvml:0/energy", "rapl:package-0", "powersensor3:/dev/ttyACM0"
  std::string name;  ///< for people
  SensorKind kind = SensorKind::instantaneous_power;
  SensorScope scope = SensorScope::gpu;
  std::string uuid, pci_address;  ///< of the device it belongs to, where there is one
  std::string driver;             ///< driver version: a calibration holds for one GPU under one driver
  // Semantics: from calibration of this GPU where there is one, else what is known of the type. 0 means unknown.
  double unit_step = 0;      ///< J for energy, W for power
  double update_period = 0;  ///< s
  double window = 0;         ///< s
  double lag = 0;            ///< s
  double read_cost = 0;      ///< s of host time per read
  /// How far two measurements of the same load on this GPU differ though each is steady in itself: relative
  /// standard deviation of one. GPUs have states that last (temperature, the clock and voltage that adaptive
  /// clocking finds), and no single measurement can see them.
  double repeatability = 0;
  double gain = 1, offset = 0;  ///< true = gain * reading + offset, from calibration with an external meter
  /// What that calibration leaves open: a relative standard deviation of the gain, and of the power at `level` W, where
  /// gain and level are independent (the middle of the powers that were compared).
  double gain_error = 0, level = 0, level_error = 0;
  // Bounds of a reading; 0 where unknown. A number outside is a failure of the sensor.
  double least_power = 0, most_power = 0;  ///< W
  /// Its last digits move under any load: one that stands still has failed.
  bool never_still = false;
  bool calibrated = false;
};

/// One reading on the host's time axis (base/clock.hpp: host_seconds()).
struct Reading {
  double time = 0;   ///< s; when the value was current as far as the sensor tells, else when it was read
  double value = 0;  ///< J or W, gain and offset applied
};

/// What came of a read.
enum class ReadStatus { ok, no_new_data, not_supported, failed };

/// A power or energy sensor. read() is called from one thread at a time, and it must not be the thread that launches.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual const SensorInfo& info() const = 0;
  /// Replaces the semantics by what calibration found.
  virtual void set_info(const SensorInfo& info) = 0;
  /// Appends the readings that are new since the last call (one, or a buffer's worth). A reading that the hardware
  /// flagged as unsupported or failed is never appended as a number.
  virtual ReadStatus read(std::vector<Reading>& out) = 0;
  /// Forgets what was buffered before now: the next read() gives only newer readings.
  virtual void restart() {}
  /// The last failure in words.
  virtual std::string last_error() const { return {}; }
};

/// What the GPU is doing beside its power: read along with every measurement.
struct DeviceState {
  std::optional<double> core_clock_mhz, memory_clock_mhz, temperature_c, core_voltage_v, power_w, power_limit_w;
  /// Why the clocks are what they are: power_cap, thermal, hardware_slowdown, power_brake, idle, sync_boost ...
  std::vector<std::string> clock_reasons;
  /// Share of the time since the last look in which the firmware held the clocks down, where it counts that.
  std::optional<double> throttled_share;
  /// Compute processes of others on the device, by pid; nullopt when it cannot be told.
  std::optional<std::vector<int>> foreign_processes;
};

class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  virtual DeviceState read() = 0;
};

/// Sensors that are here, by id; never throws.
std::vector<SensorInfo> list_sensors();
/// Opens by id; "nvml:0" or "nvml:GPU-<uuid>" picks the GPU's best sensor. Throws UserError naming what there is.
std::unique_ptr<Sensor> open_sensor(const std::string& id);
/// The sensors of a device, best first (energy counter, sample buffer, instantaneous, averaged); empty when none.
/// `looked_for`, when given, receives what was tried and why it is not there.
std::vector<std::unique_ptr<Sensor>> sensors_for_device(const std::string& uuid, const std::string& pci_address,
                                                        bool is_cpu, std::vector<std::string>* looked_for = nullptr);
/// The monitor of a device; nullptr when the driver offers none.
std::unique_ptr<DeviceMonitor> monitor_for_device(const std::string& uuid, const std::string& pci_address);
/// The monitor of what a control sets, by the control's reopen_id(); nullptr when there is none.
std::unique_ptr<DeviceMonitor> monitor_for_control(const std::string& id);

}  // namespace ergotune
