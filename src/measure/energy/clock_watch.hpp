// The clock of a controlled GPU while a configuration runs.
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

/// Reads a GPU's state again and again from a thread of its own. Used by one thread at a time.
class ClockWatch {
 public:
  ClockWatch() = default;
  ~ClockWatch() { end(); }
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

  /// Watches what this control sets (Control::reopen_id()); nothing where its driver has no monitor.
  void open(const std::string& control);
  bool watching() const { return monitor_ != nullptr; }
  /// One look, now.
  DeviceState look();
  /// One look every `period` s. Each is several calls of the management library, which can hold up the driver's own.
  void begin(double period = 0.015);
  void end();
  /// Looks since begin().
  std::size_t looks() const { return looks_; }
  /// s that looking took since begin().
  double seconds_looking() const { return seconds_; }
  /// Forgets those so far.
  void forget();
  /// What note_looks() says of the looks since begin().
  void note(Measurement& measurement, double requested_mhz, double tolerance, bool all_reasons = false) const;

  /// What the warnings of a clock that changed, and of one that was held down by more than its power limit, begin with.
  static constexpr const char* kChanged = "the clock changed while it was measured";
  static constexpr const char* kHeldDown = "held down by something else than its power limit";

 private:
  void loop(double period);
  std::string control_;
  std::unique_ptr<DeviceMonitor> monitor_;
  mutable std::mutex mutex_;  ///< monitor_ and states_
  std::vector<DeviceState> states_;
  std::atomic<std::size_t> looks_ = 0;
  std::atomic<double> seconds_ = 0;
  std::atomic<bool> active_ = false;
  std::thread thread_;
};

/// Whether its power limit, and nothing else, holds the clock down.
bool held_by_power_limit(const DeviceState& state);

/// core_clock, memory_clock and temperature, where the measurement has none yet, and the reasons for the clock among
/// its warnings; of a clock that changed meanwhile by more than `tolerance` both values, and which share of the looks
/// saw a clock below the asked one that the power limit does not explain. `asked_mhz` 0: none was asked.
void note_looks(std::span<const DeviceState> looks, Measurement& measurement, double requested_mhz, double tolerance,
                bool all_reasons);

}  // namespace ergotune
