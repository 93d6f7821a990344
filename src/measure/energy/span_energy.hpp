// Energy between two points in time, measured by a sensor, for work with a beginning and an end (such as a run of a
// program). The estimators of energy.hpp assume a steady state instead.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune {

struct SpanEnergy {
  std::string why_not;  ///< reason why there is no value; empty if there is one
  double joules = 0;
  /// Standard error due to the ends of the span: sensor updates and windows do not coincide with them.
  double edge_error = 0;
};

/// Integrates a sensor's power over each span. Counters: the difference between the ticks around the span's ends. Power
/// sensors: trapezoids between the centres of the intervals to which the readings refer, corrected for lag. There is no
/// value if a reading is impossible for such a GPU, if a counter stopped, or if the readings do not cover both ends.
std::vector<SpanEnergy> energy_over(const SensorTrace& trace, const std::vector<TimeSpan>& spans);

/// Returns for how long, in s, the sensor must be read before and after a span.
double reading_margin(const SensorInfo& info);
/// Returns the length in s (a few updates or windows) below which a span cannot be resolved.
double shortest_span(const SensorInfo& info);

/// Reads sensors in a separate thread between begin() and end(). It reads often while no program runs, to locate the
/// ticks of counters and the power before and after a run, and rarely while one runs, since each call of a GPU's
/// management library can delay the calls that the program makes to its driver.
class SensorRecorder {
 public:
  explicit SensorRecorder(std::vector<std::unique_ptr<Sensor>> sensors) : sensors_(std::move(sensors)) {}
  ~SensorRecorder() { end(); }
  SensorRecorder(const SensorRecorder&) = delete;
  SensorRecorder& operator=(const SensorRecorder&) = delete;

  const std::vector<std::unique_ptr<Sensor>>& sensors() const { return sensors_; }
  /// Discards previous readings, and reads each sensor every `period` s from now on.
  void begin(double period);
  /// Does the same with a period per sensor.
  void begin(const std::function<double(const SensorInfo&)>& period);
  /// While a program runs, each sensor is read only as often as necessary: a counter once a second, a power sensor once
  /// per update. Takes effect immediately.
  void set_program_runs(bool runs);
  /// s spent on reading while a program ran, since begin().
  double seconds_during_program() const { return beside_; }
  /// Waits until each sensor has delivered a value (two for counters, whose first reading is not a tick) and, if
  /// `after` is given, a value for a later time than `after`. Gives up after the sensor's margin plus `patience` s, on
  /// a machine that reads slowly.
  void wait(double after = 0, double patience = 1) const;
  /// The traces recorded so far, one per sensor; only readings from time `from` on.
  std::vector<SensorTrace> traces(double from = 0) const;
  /// For each sensor, the share of the time since begin() that was spent on reading it.
  std::vector<double> shares_reading() const;
  void end();

 private:
  void read(std::size_t sensor);
  void loop(const std::vector<double>& periods);
  std::vector<std::unique_ptr<Sensor>> sensors_;
  mutable std::mutex mutex_;  ///< protects traces_ and costs_
  std::vector<SensorTrace> traces_;
  std::vector<double> costs_;  ///< s spent on reading each sensor
  double begun_ = 0;
  std::mutex pace_;  ///< protects the two flags; used with changed_
  std::condition_variable changed_;
  bool active_ = false, program_runs_ = false;
  std::atomic<double> beside_ = 0;
  std::thread thread_;
};

}  // namespace ergotune
