#include "base/clock_switch.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace ergotune {

bool ClockSwitch::runs_long(double clock_mhz, double expected_seconds) const {
  const auto seen = seconds_.find(clock_mhz);
  return (seen == seconds_.end() ? expected_seconds : seen->second) >= kLeastLatencies * latency_;
}

bool ClockSwitch::follows(double clock_mhz, double expected_seconds, double now) {
  const bool rarely = !runs_long(clock_mhz, expected_seconds) && now - followed_ < latency_;
  if (clock_mhz == running_mhz_ || rarely) return false;
  followed_ = now;
  return true;
}

std::optional<double> ClockSwitch::begin(double clock_mhz, double expected_seconds, double now) {
  if (clock_mhz == running_mhz_) return std::nullopt;
  if (running_mhz_ >= 0) {
    seconds_[running_mhz_] = now - began_;
    if (runs_long(running_mhz_, 0)) own_until_ = now;
  }
  running_mhz_ = clock_mhz;
  began_ = now;
  const bool own = clock_mhz > 0 && runs_long(clock_mhz, expected_seconds);
  const auto seen = seconds_.find(clock_mhz);
  // What ends before a change is in force is no reason for one.
  if (!own && seen != seconds_.end() && seen->second < latency_ && now - own_until_ < latency_) return std::nullopt;
  const double wanted = own ? clock_mhz : common_mhz_;
  if (wanted == requested_mhz_) return std::nullopt;
  return requested_mhz_ = wanted;
}

/// A request takes a while to reach the driver, whatever the latency, s.
constexpr double kLeastLatency = 0.01;

ClockFollower::ClockFollower(double common_mhz, double latency, std::function<void(double)> request)
    : switch_(common_mhz, std::max(latency, kLeastLatency)), request_(std::move(request)) {}

bool ClockFollower::queued(double clock_mhz, double expected_seconds) {
  const std::lock_guard lock(mutex_);
  if (!switch_.follows(clock_mhz, expected_seconds, host_seconds())) return false;
  running_mhz_.store(clock_mhz, std::memory_order_relaxed);
  return true;
}

void ClockFollower::reached(double clock_mhz, double expected_seconds) {
  const std::lock_guard lock(mutex_);
  if (const auto wanted = switch_.begin(clock_mhz, expected_seconds, host_seconds())) request_(*wanted);
}

}  // namespace ergotune
