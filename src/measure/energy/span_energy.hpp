// Energy that a sensor saw between two moments: of something that has a beginning and an end (a program's run), where
// energy.hpp's estimators take a steady state for granted.
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
  std::string why_not;  ///< empty where there is a number
  double joules = 0;
  /// Standard error that the edges leave open: the sensor's update or window is spread over them.
  double edge_error = 0;
};

/// The integral of a sensor's power over each span: of counters the difference between the ticks around its ends, of
/// power sensors the trapezoids between the middles of what the readings speak of, lag taken off. A reading that no
/// such GPU can give, a counter that stood still, and readings that do not reach both ends give no number.
std::vector<SpanEnergy> energy_over(const SensorTrace& trace, const std::vector<TimeSpan>& spans);

/// s before and after a span for which the sensor has to be read.
double reading_margin(const SensorInfo& info);
/// s below which a span says little: a few updates, or windows.
double shortest_span(const SensorInfo& info);

/// Reads sensors from a thread of its own between begin() and end(): often while nothing runs, where a counter's ticks
/// and the power beside a run are found, and rarely while something does, since each call of a GPU's management library
/// can hold up the calls that the program makes to its driver.
class SensorRecorder {
 public:
  explicit SensorRecorder(std::vector<std::unique_ptr<Sensor>> sensors) : sensors_(std::move(sensors)) {}
  ~SensorRecorder() { end(); }
  SensorRecorder(const SensorRecorder&) = delete;
  SensorRecorder& operator=(const SensorRecorder&) = delete;

  const std::vector<std::unique_ptr<Sensor>>& sensors() const { return sensors_; }
  /// Forgets what was, and reads every `period` s from now on.
  void begin(double period);
  /// The same with a period for each sensor.
  void begin(const std::function<double(const SensorInfo&)>& period);
  /// Between a program's beginning and its end only as often as each sensor needs: a counter once a second, a sensor of
  /// power once an update. Both take effect at once.
  void set_program_runs(bool runs);
  /// s that reading took while a program ran, since begin().
  double seconds_beside_program() const { return beside_; }
  /// Waits until each sensor has said something (twice: a counter's first reading is no tick) and, with `after`,
  /// something of a time later than that; no longer than its margin and `patience` s more, for a machine that is slow
  /// to let it read.
  void wait(double after = 0, double patience = 1) const;
  /// So far, one of each sensor; readings from a time on.
  std::vector<SensorTrace> traces(double from = 0) const;
  /// Of each sensor, the share of the time since begin() in which it was being read.
  std::vector<double> shares_reading() const;
  void end();

 private:
  void read(std::size_t sensor);
  void loop(const std::vector<double>& periods);
  std::vector<std::unique_ptr<Sensor>> sensors_;
  mutable std::mutex mutex_;  ///< traces_, costs_
  std::vector<SensorTrace> traces_;
  std::vector<double> costs_;  ///< s of reading each
  double begun_ = 0;
  std::mutex pace_;  ///< the two flags, for changed_
  std::condition_variable changed_;
  bool active_ = false, program_runs_ = false;
  std::atomic<double> beside_ = 0;
  std::thread thread_;
};

}  // namespace ergotune
