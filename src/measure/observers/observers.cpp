#include "measure/observers/observers.hpp"

#include "base/clock.hpp"
#include "base/statistics.hpp"

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

}  // namespace

std::shared_ptr<Observer> make_launch_counter() { return std::make_shared<LaunchCounter>(); }
std::shared_ptr<Observer> make_host_timer(int passes) { return std::make_shared<HostTimer>(passes); }

}  // namespace ergotune
