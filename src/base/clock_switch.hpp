// When the core clock changes between kernels of a program that were tuned at different clocks.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace ergotune {

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
  double own_until_ = 0;              ///< when kernels with a tuned clock have ended
  std::map<double, double> seconds_;  ///< of the latest kernels in a row at each clock
};

/// Follows the kernels that one process queues on a device. Any thread may call it.
class ClockFollower {
 public:
  /// `request` is called with each clock (MHz) that is to be set.
  ClockFollower(double common_mhz, double latency, std::function<void(double)> request);

  /// Whether the kernels that were queued before were tuned at another clock.
  bool differs(double clock_mhz) const { return running_mhz_.load(std::memory_order_relaxed) != clock_mhz; }
  /// A kernel of another clock is queued. Returns whether reached() is to be called when the queue gets there.
  bool queued(double clock_mhz, double expected_seconds);
  void reached(double clock_mhz, double expected_seconds);

 private:
  std::mutex mutex_;
  ClockSwitch switch_;
  std::atomic<double> running_mhz_{-1};
  std::function<void(double)> request_;
};

}  // namespace ergotune
