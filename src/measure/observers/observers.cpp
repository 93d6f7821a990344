#include "measure/observers/observer_registry.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "power/sensors/core_voltage.hpp"

namespace ergotune {
namespace {

class LaunchCounter : public Observer {
 public:
  std::string name() const override { return "launches"; }
  ObserverPhase phase() const override { return ObserverPhase::launches; }
  void register_configuration(const ObservedConfiguration&) override { launches_ = 0; }
  void after_finish() override { ++launches_; }
  std::map<std::string, Quantity> results() override {
    return {{"launches", {static_cast<double>(launches_), 0, launches_, "counted", {}, Provenance::measured}}};
  }

 private:
  std::int64_t launches_ = 0;
};

class HostTimer : public Observer {
 public:
  explicit HostTimer(int passes) : passes_(passes) {}
  std::string name() const override { return "host_time"; }
  ObserverPhase phase() const override { return ObserverPhase::own; }
  void register_configuration(const ObservedConfiguration&) override { seconds_ = {}; }
  int passes() override { return passes_; }
  void begin_pass(int) override { began_ = host_seconds(); }
  void end_pass(int) override { seconds_.add(host_seconds() - began_); }
  std::map<std::string, Quantity> results() override {
    return {{"host_time",
             {seconds_.mean(),
              seconds_.standard_error(),
              static_cast<std::int64_t>(seconds_.count()),
              "own phase",
              {},
              Provenance::measured,
              static_cast<double>(seconds_.count()) - 1}}};
  }

 private:
  int passes_;
  double began_ = 0;
  RunningStatistics seconds_;
};

/// s of load before the voltage is read, since clocks and voltage follow the load.
constexpr double kRampUp = 0.15;
/// Longest time in s for which the stream is prolonged.
constexpr double kPatience = 3;

class VoltageReader : public Observer {
 public:
  explicit VoltageReader(std::string uuid) : uuid_(std::move(uuid)) {}
  ~VoltageReader() override { join(); }
  std::string name() const override { return "core_voltage"; }
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  void register_configuration(const ObservedConfiguration&) override { voltage_.reset(); }

  void after_start() override {
    join();
    voltage_.reset();
    if (unavailable_) return;
    began_ = host_seconds();
    answered_ = ended_ = false;
    thread_ = std::thread([this] {
      while (!ended_ && host_seconds() - began_ < kRampUp) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto volts = read_core_voltage(uuid_);
      // Only valid if it was read under load.
      if (!ended_) voltage_ = volts;
      unavailable_ = !volts;
      answered_ = true;
    });
  }
  void after_finish() override {
    ended_ = true;
    join();
  }
  bool wants_more(const LaunchStream&) override {
    return thread_.joinable() && !answered_ && host_seconds() - began_ < kPatience;
  }
  std::map<std::string, Quantity> results() override {
    if (!voltage_) return {};
    return {{"core_voltage", {*voltage_, 0, 1, "read once under load", {}, Provenance::measured}}};
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::string uuid_;
  std::thread thread_;
  std::atomic<bool> answered_, ended_, unavailable_;
  std::optional<double> voltage_;  ///< owned by the thread until it is joined
  double began_ = 0;
};

}  // namespace

std::shared_ptr<Observer> make_launch_counter() { return std::make_shared<LaunchCounter>(); }
std::shared_ptr<Observer> make_host_timer(int passes) { return std::make_shared<HostTimer>(passes); }

std::shared_ptr<Observer> make_voltage_reader(std::string uuid) {
  return std::make_shared<VoltageReader>(std::move(uuid));
}

}  // namespace ergotune
