// Observers that need no special hardware.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

const ObservedQuantity kLaunches("launches", "", "rounds that an observer was shown", std::nullopt, false);
const ObservedQuantity kHostTime("host_time", "s", "host time of one round by itself", Direction::minimise, true);

/// Counts launches.
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

/// Measures the host time of isolated iterations, including launch and wait.
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

std::shared_ptr<Observer> make_host_timer(const ObserverOptions& options, const ObserverContext&) {
  const std::int64_t passes = options.at("passes").front().as_integer();
  if (passes < 1 || passes > 1'000'000)
    throw UserError(fmt::format("\"passes\" of observer \"host_time\" must be at least 1, not {}", passes));
  return std::make_shared<HostTimer>(static_cast<int>(passes));
}

}  // namespace

void add_host_observers(std::vector<ObserverEntry>& list) {
  list.push_back({{"host_time",
                   "Host time of one round by itself, launch and wait included, with inputs restored before it",
                   ObserverPhase::own,
                   {"host_time"},
                   {{"passes", ObserverOption::Type::integer, false, "Rounds that are timed", {3}}}},
                  make_host_timer});
  list.push_back(
      {{"launches", "Counts the rounds that it is shown one by one", ObserverPhase::launches, {"launches"}, {}},
       [](const ObserverOptions&, const ObserverContext&) { return std::make_shared<LaunchCounter>(); }});
}

}  // namespace ergotune
