// Watches the clocks of a GPU while a configuration runs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ergotune/result.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {

/// Reads a GPU's state repeatedly in a separate thread. To be used by one thread at a time.
class ClockWatch {
 public:
  ClockWatch() = default;
  ~ClockWatch() { end(); }
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

  /// Watches the device of a control (Control::reopen_id()). Does nothing if its driver has no monitor.
  void open(const std::string& control);
  bool watching() const { return monitor_ != nullptr; }
  /// Reads the state once.
  DeviceState look();
  /// Reads the state every `period` s. Each read is several calls of the management library, which can delay the
  /// driver's calls.
  void begin(double period = 0.015);
  void end();
  /// Number of reads since begin().
  std::size_t looks() const { return looks_; }
  /// s spent on reading since begin().
  double seconds_reading() const { return seconds_; }
  /// Discards the states read so far.
  void forget();
  /// Applies note_clock_states() to the states read since begin().
  void note(Measurement& measurement, double requested_mhz, double tolerance, bool all_reasons = false) const;

  /// Beginnings of the warnings about a clock that changed, and about one that was reduced by more than the power
  /// limit.
  static constexpr const char* kChanged = "the clock changed while it was measured";
  static constexpr const char* kHeldDown = "held down by something else than its power limit";

 private:
  void loop(double period);
  std::string control_;
  std::unique_ptr<DeviceMonitor> monitor_;
  mutable std::mutex mutex_;  ///< protects monitor_ and states_
  std::vector<DeviceState> states_;
  std::atomic<std::size_t> looks_ = 0;
  std::atomic<double> seconds_ = 0;
  std::atomic<bool> active_ = false;
  std::thread thread_;
};

/// True if the power limit is the only reason for a reduced clock.
bool held_by_power_limit(const DeviceState& state);

/// Adds core_clock, memory_clock and temperature to the measurement if it lacks them, and the reasons for the clock to
/// its warnings. `requested_mhz` 0: no clock was requested; otherwise warns if the clock changed by more than
/// `tolerance` (with both values) or, if the power limit was active, if another reason kept the clock below the
/// requested one (with the share of the states).
void note_clock_states(std::span<const DeviceState> looks, Measurement& measurement, double requested_mhz,
                       double tolerance, bool all_reasons);

}  // namespace ergotune
