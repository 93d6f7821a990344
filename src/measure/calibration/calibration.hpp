// What a sensor's readings mean on the GPU at hand: found by driving a known load and fitting. Read cost,
// update period, averaging window and lag, boxcar or exponential, counter step and loss, idle power; gain and
// offset against an external meter.
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

/// A value with the interval that holds it with about 95 % confidence.
struct Calibrated {
  double value = 0, low = 0, high = 0;
};

struct Calibration {
  SensorInfo sensor;                                             ///< with the semantics that were found
  Calibrated update_period, window, lag, read_cost, idle_power;  ///< s, s, s, s, W
  /// Relative standard deviation between measurements of one load (SensorInfo::repeatability); where the sensor is
  /// quick enough to tell.
  std::optional<Calibrated> repeatability;
  /// Counters: the smallest step seen, J; energy missed at the start of a load, J.
  std::optional<double> counter_step;
  std::optional<Calibrated> counter_loss;
  /// Share of the readings' variance that the fitted model explains, and the other shape's.
  double explained = 0, explained_other = 0;
  /// Against an external meter: true = gain * reading + offset.
  struct Meter {
    std::string sensor;
    Calibrated gain, offset;
  };
  std::optional<Meter> meter;
  /// Shortest measurement that can be trusted with this sensor, s.
  double shortest_measurement = 0;
  std::vector<std::string> notes;
};

/// What was read while a load was switched on and off; `busy` are the spans when it was on.
struct CalibrationTrace {
  std::vector<Reading> readings;
  std::vector<TimeSpan> busy;
};

/// Where calibration happens: a real device with a real sensor, or a simulated GPU in tests.
class CalibrationRig {
 public:
  virtual ~CalibrationRig() = default;
  virtual const SensorInfo& sensor() const = 0;
  /// Switches the load on and off for the given spans (on, off, on, off ... in s) while the sensor is read as
  /// fast as it can be. `meter`, when given, receives the external meter's readings.
  virtual CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) = 0;
  /// Seconds that one read takes on the host, several of them.
  virtual std::vector<double> read_costs() = 0;
  virtual bool has_meter() const { return false; }
  virtual std::string meter_id() const { return {}; }
};

/// The whole calibration; takes 40 to 60 s of the rig's time. Throws Error when the sensor does not answer or
/// does not follow the load.
Calibration calibrate(CalibrationRig& rig);

/// A rig on a device: our own compute kernel (CUDA or OpenCL) as the load.
std::unique_ptr<CalibrationRig> make_device_rig(Device& device, std::unique_ptr<Sensor> sensor,
                                                std::unique_ptr<Sensor> meter = nullptr);

/// Calibrates a sensor by its id with a load on `device` (empty: the device with the sensor's UUID or PCI address),
/// against the better sensor `meter` where one is named. `tell` is called once, before the load. Throws UserError where
/// no device belongs to the sensor.
Calibration calibrate_sensor(const std::string& sensor, const std::string& device, const std::string& meter,
                             const std::function<void(const std::string&)>& tell);

/// Stores it where sensors find it when they are opened; returns the file. Throws Error when that is
/// impossible.
std::filesystem::path store_calibration(const Calibration& calibration);
/// The JSON document of `ergotune calibrate --json`.
std::string to_json(const Calibration& calibration);

// Parts, as pure functions.

/// Update period from polled readings: the spacing of changes, refined by a line through them.
Calibrated find_update_period(const std::vector<Reading>& readings);
/// Window (or time constant) and lag that explain the readings of all traces best, boxcar or exponential.
struct WindowFit {
  bool exponential = false;
  Calibrated window, lag;
  double explained = 0, explained_other = 0;
};
WindowFit fit_window(const std::vector<CalibrationTrace>& traces, double update_period);

}  // namespace ergotune
