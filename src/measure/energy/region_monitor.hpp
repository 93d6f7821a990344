// Reads sensors while regions of code run, and estimates the energy of the regions.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ergotune/energy_region.hpp"
#include "measure/energy/span_energy.hpp"
#include "power/sensors/stored_calibration.hpp"

namespace ergotune {

/// Returns the time in s between readings of a sensor while regions are measured: half of its update period, between
/// 1/50 s and 1/10 s.
double region_reading_period(const SensorInfo& sensor);

/// Longest time in s before a region from which readings are used.
constexpr double kMostMargin = 30;

/// Sums a sensor's energy over the spans. Spans with hardly a gap between them are merged, since each end adds
/// uncertainty. The interval covers the ends (SpanEnergy::edge_error, with readings `period` s apart), the time between
/// windows of a sensor that does not cover all of the time, the repeatability of the device, the calibration, and the
/// share of time spent on reading the sensor, during which the program may have to wait.
///
/// `at_most` is an upper bound. Counters: all ticks that overlap with a region. Sensors whose windows cover all of the
/// time: all windows that overlap with a region, each counted once. It never exceeds the most that the device can draw,
/// which is the only bound for other sensors.
SensorEnergy energy_of_regions(const SensorTrace& trace, const std::vector<TimeSpan>& spans,
                               const std::optional<IdlePower>& idle, double period, double share_reading = 0);

/// Returns the sum over all sensors.
RegionEnergy sum_of(std::string name, const std::vector<TimeSpan>& spans, std::vector<SensorEnergy> sensors);

class RegionMonitor {
 public:
  /// Opens sensors by id; no ids: sensors_of_machine(). Returns when each sensor has delivered a value. Throws
  /// UserError for unknown or overlapping sensors, and if there is none.
  explicit RegionMonitor(const std::vector<std::string>& ids);
  ~RegionMonitor();

  std::vector<std::string> sensors() const;
  void measure_idle(double seconds);
  void set_idle_power(const std::vector<double>& watts);
  /// While true, sensors are read rarely to disturb a running program as little as possible (SensorRecorder).
  void set_program_runs(bool runs) { recorder_->set_program_runs(runs); }
  /// Waits until the sensors cover the end of the last span.
  RegionEnergy energy(const std::string& name, const std::vector<TimeSpan>& spans) const;
  /// False in a process that was forked after construction, since the reading thread exists only in the original
  /// process.
  bool is_here() const;
  /// Throws UserError if is_here() is false.
  void require_here() const;

 private:
  std::vector<IdlePower> idle() const;
  std::unique_ptr<SensorRecorder> recorder_;
  const pid_t process_;
  mutable std::mutex mutex_;  ///< protects idle_
  std::vector<IdlePower> idle_;
};

}  // namespace ergotune
