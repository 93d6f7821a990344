// Reads sensors while regions of code run, and computes the energy of the regions.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "measure/energy/region_estimate.hpp"

namespace ergotune {

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
