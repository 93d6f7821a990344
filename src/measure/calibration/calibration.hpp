// Determines how a sensor of this machine behaves by driving a known load and fitting: cost of a read, update period,
// averaging window and lag (boxcar or exponential), step and loss of a counter, idle power; and gain and offset against
// an external meter.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "measure/energy/energy.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// A value with its confidence interval of about 95 %.
struct Calibrated {
  double value = 0, low = 0, high = 0;
};

struct Calibration {
  SensorInfo sensor;                                             ///< with the properties that were determined
  Calibrated update_period, window, lag, read_cost, idle_power;  ///< s, s, s, s, W
  /// Relative standard deviation between measurements of one load (SensorInfo::repeatability); nullopt if the sensor is
  /// too slow to determine it.
  std::optional<Calibrated> repeatability;
  /// Counters: the smallest step observed, J; and the energy missed at the start of a load, J.
  std::optional<double> counter_step;
  std::optional<Calibrated> counter_loss;
  /// Share of the readings' variance that the fitted model explains, and the share that the model of the other shape
  /// explains.
  double explained = 0, explained_other = 0;
  /// Calibration against an external meter: true value = gain * reading + offset.
  struct Meter {
    std::string sensor;
    Calibrated gain, offset;
  };
  std::optional<Meter> meter;
  /// Duration in s of the shortest trustworthy measurement with this sensor.
  double shortest_measurement = 0;
  std::vector<std::string> notes;
};

/// Readings taken while a load was switched on and off; `busy` holds the spans when it was on.
struct CalibrationTrace {
  std::vector<Reading> readings;
  std::vector<TimeSpan> busy;
};

/// The environment of a calibration: a device with a sensor, or a simulated GPU in tests.
class CalibrationRig {
 public:
  virtual ~CalibrationRig() = default;
  virtual const SensorInfo& sensor() const = 0;
  /// Switches the load on and off for the given durations (on, off, on, off ... in s) while the sensor is read as fast
  /// as possible. `meter`, if given, receives the readings of the external meter.
  virtual CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) = 0;
  /// Returns the durations in s of several reads on the host.
  virtual std::vector<double> read_costs() = 0;
  virtual bool has_meter() const { return false; }
  virtual std::string meter_id() const { return {}; }
};

/// Performs all steps of a calibration; takes 40 to 60 s. Throws Error if the sensor does not deliver values or does
/// not follow the load.
Calibration calibrate(CalibrationRig& rig);

/// Creates a rig for a device whose load is ergotune's compute kernel (CUDA or OpenCL).
std::unique_ptr<CalibrationRig> make_device_rig(Device& device, std::unique_ptr<Sensor> sensor,
                                                std::unique_ptr<Sensor> meter = nullptr);

/// Calibrates a sensor by its id with a load on `device` (empty: the device with the sensor's UUID or PCI address), and
/// against the more accurate sensor `meter` if it is given. Calls `notify` with a message once, before the load. Throws
/// UserError if no device belongs to the sensor.
Calibration calibrate_sensor(const std::string& sensor, const std::string& device, const std::string& meter,
                             const std::function<void(const std::string&)>& notify);

/// Stores a calibration in the file from which sensors load it, and returns the path. Throws Error if it cannot be
/// written.
std::filesystem::path store_calibration(const Calibration& calibration);
/// Returns the JSON document of `ergotune calibrate --json`.
std::string to_json(const Calibration& calibration);

// The steps, as pure functions.

/// Determines the update period from polled readings: the spacing of changes, refined by a linear fit.
Calibrated find_update_period(const std::vector<Reading>& readings);
/// Window (or time constant) and lag that explain the readings of all traces best, for a boxcar or an exponential.
struct WindowFit {
  bool exponential = false;
  Calibrated window, lag;
  double explained = 0, explained_other = 0;
};
WindowFit fit_window(const std::vector<CalibrationTrace>& traces, double update_period);

}  // namespace ergotune
