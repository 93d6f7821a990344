// Clocks and limits of wisdom while this process runs: one setting for all kernels, or the clock of each where that
// pays.
#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock_switch.hpp"
#include "launcher/native.hpp"

namespace ergotune::launcher {

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
    const ClockFollower* follower = follower_.load(std::memory_order_acquire);
    return follower && follower->differs(clock_mhz);
  }
  /// Kernels of another clock begin at this point of the queue.
  void begin(const Native& native, void* queue, double clock_mhz, double expected_seconds);

 private:
  explicit HeldClocks(const DeviceInfo& device) : device_(device) {}
  DeviceInfo device_;
  std::mutex mutex_;
  bool applied_ = false;
  std::atomic<ClockFollower*> follower_{nullptr};  ///< null: whether a change pays is not known
};

}  // namespace ergotune::launcher
