// Sensors that are read while regions of code run, and what the readings say of the regions.
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
  /// Sensors by id; none: sensors_of_machine(). Returns when each has answered. Throws UserError for unknown and
  /// overlapping sensors and where there is none.
  explicit RegionMonitor(const std::vector<std::string>& ids);
  ~RegionMonitor();

  std::vector<std::string> sensors() const;
  void measure_idle(double seconds);
  void set_idle_power(const std::vector<double>& watts);
  /// From the beginning to the end of a program that shall be disturbed as little as possible: SensorRecorder.
  void set_program_runs(bool runs) { recorder_->set_program_runs(runs); }
  /// Waits until the sensors have answered for the end of the last span.
  RegionEnergy energy(const std::string& name, const std::vector<TimeSpan>& spans) const;
  /// False in a process forked from the one that made it: the thread that reads stays there.
  bool is_here() const;
  /// Throws UserError where it is not.
  void require_here() const;

 private:
  std::vector<IdlePower> idle() const;
  std::unique_ptr<SensorRecorder> recorder_;
  const pid_t process_;
  mutable std::mutex mutex_;  ///< idle_
  std::vector<IdlePower> idle_;
};

}  // namespace ergotune
