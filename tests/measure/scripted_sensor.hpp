// Sensors and monitors that say what a test tells them to, one part for each read, and tell when they have.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "power/sensors/sensor.hpp"

namespace ergotune::test {

/// How often something was read, for a test that waits for a thread that reads.
class Reads {
 public:
  /// The number of this one, from 0.
  std::size_t next() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return count_++;
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

class ScriptedSensor : public Sensor {
 public:
  using Parts = std::vector<std::vector<Reading>>;
  ScriptedSensor(SensorInfo info, Parts parts, ReadStatus status = ReadStatus::ok)
      : info_(std::move(info)), parts_(std::move(parts)), status_(status) {}
  const SensorInfo& info() const override { return info_; }
  void set_info(const SensorInfo& info) override { info_ = info; }
  ReadStatus read(std::vector<Reading>& out) override {
    const std::size_t part = reads.next();
    if (part < parts_.size()) out.insert(out.end(), parts_[part].begin(), parts_[part].end());
    return status_;
  }
  void restart() override { ++restarts; }
  std::string last_error() const override { return "it is gone"; }
  Reads reads;
  int restarts = 0;

 private:
  SensorInfo info_;
  Parts parts_;
  ReadStatus status_;
};

/// The last state goes on.
class ScriptedMonitor : public DeviceMonitor {
 public:
  explicit ScriptedMonitor(std::vector<DeviceState> states) : states_(std::move(states)) {}
  DeviceState read() override { return states_[std::min(reads.next(), states_.size() - 1)]; }
  Reads reads;

 private:
  std::vector<DeviceState> states_;
};

}  // namespace ergotune::test
