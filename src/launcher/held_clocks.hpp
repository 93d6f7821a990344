// Clocks and limits of wisdom while this process runs: one setting for all kernels, or the clock of each where that
// pays.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launcher/native.hpp"

namespace ergotune::launcher {

/// Decides when the core clock changes between kernels that wisdom gives different clocks.
class ClockSwitch {
 public:
  /// A change is in force `latency` s after its request. Kernels that run in a row at one clock for less than this many
  /// latencies keep the common clock: the clock before would last for more than a tenth of their time, and theirs as
  /// long into the kernel that follows.
  /// The common clock is requested as soon as such kernels run for longer than a latency.
  static constexpr double kLeastLatencies = 10;
  ClockSwitch(double common_mhz, double latency)
      : common_mhz_(common_mhz), latency_(latency), requested_mhz_(common_mhz) {}

  /// Whether changes to this clock are to be followed: those of kernels that run for long, and others rarely, to notice
  /// when they do.
  bool follows(double clock_mhz, double expected_seconds, double now);
  /// At `now`, kernels begin that were tuned at `clock_mhz` (0: at none), and are expected to run for so long, if it is
  /// not known from their last time. Returns the clock to request, if it changes.
  std::optional<double> begin(double clock_mhz, double expected_seconds, double now);

 private:
  bool runs_long(double clock_mhz, double expected_seconds) const;
  double common_mhz_, latency_, requested_mhz_;
  double running_mhz_ = -1, began_ = 0, followed_ = 0;
  double own_until_ = 0;              ///< when kernels at a clock of their own have ended
  std::map<double, double> seconds_;  ///< of the latest kernels in a row at each clock
};

/// Those of one device. `ergotune clocks set --for` this process holds them, and restores them however it ends.
class HeldClocks {
 public:
  /// The same object for each kernel of this process on the device. It lives as long as the process.
  static HeldClocks& of(const DeviceInfo& device);

  /// Starts that command with the first kernel that has a clock or limit, and waits until the setting is in force.
  /// `latency`: the time of a change of clock in s where tuning measured it, else 0. Returns the reason at the first
  /// failure, otherwise an empty string.
  std::string apply(const std::vector<std::filesystem::path>& wisdom, double latency);
  /// Whether the kernels before were tuned at another clock.
  bool differ(double clock_mhz) const {
    const double running = running_mhz_.load(std::memory_order_relaxed);
    return running != clock_mhz && running != kInactive;
  }
  /// Kernels of another clock begin at this point of the queue.
  void begin(const Native& native, void* queue, double clock_mhz, double expected_seconds);

 private:
  static constexpr double kInactive = -2;
  explicit HeldClocks(const DeviceInfo& device) : device_(device) {}
  void request(double clock_mhz, double expected_seconds);
  DeviceInfo device_;
  std::mutex mutex_;
  bool applied_ = false;
  int requests_ = -1;  ///< the command reads from it the clocks that are to be set
  std::optional<ClockSwitch> switch_;
  std::atomic<double> running_mhz_{kInactive};
};

}  // namespace ergotune::launcher
