#include "measure/energy/region_monitor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor_overlap.hpp"

namespace ergotune {
namespace {

std::vector<std::unique_ptr<Sensor>> open_sensors(std::vector<std::string> ids) {
  if (ids.empty()) ids = sensors_of_machine();
  if (ids.empty())
    throw UserError("no sensor of energy or power can be read here; \"ergotune doctor\" lists what is missing");
  std::vector<std::unique_ptr<Sensor>> sensors;
  for (const std::string& id : ids) sensors.push_back(open_sensor(id));
  require_disjoint(sensors);
  return sensors;
}

}  // namespace

RegionMonitor::RegionMonitor(const std::vector<std::string>& ids)
    : recorder_(std::make_unique<SensorRecorder>(open_sensors(ids))), process_(::getpid()) {
  recorder_->begin(region_reading_period);
  recorder_->wait();
}

RegionMonitor::~RegionMonitor() {
  // The recorder's thread does not exist in a forked process and cannot be joined.
  if (!is_here()) (void)recorder_.release();
}

bool RegionMonitor::is_here() const { return ::getpid() == process_; }

void RegionMonitor::require_here() const {
  if (!is_here())
    throw UserError("this energy monitor was opened before the process was forked: open one in the new process");
}

std::vector<std::string> RegionMonitor::sensors() const {
  std::vector<std::string> ids;
  for (const auto& sensor : recorder_->sensors()) ids.push_back(sensor->info().id);
  return ids;
}

std::vector<IdlePower> RegionMonitor::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_;
}

void RegionMonitor::measure_idle(double seconds) {
  require_here();
  if (!(seconds > 0)) throw UserError("the time in which idle power is measured must be above 0 s");
  TimeSpan span;
  span.from = host_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  span.to = host_seconds();
  std::vector<IdlePower> idle;
  for (const SensorEnergy& one : energy("idle", {span}).sensors) {
    if (!one.joules)
      throw UserError(fmt::format("{}: idle power cannot be measured in {:g} s{}; measure it longer", one.sensor,
                                  seconds, one.why_not.empty() ? std::string() : " (" + one.why_not + ")"));
    idle.push_back({*one.joules / span.length(), one.half_width / (1.96 * span.length())});
  }
  const std::lock_guard lock(mutex_);
  idle_ = std::move(idle);
}

void RegionMonitor::set_idle_power(const std::vector<double>& watts) {
  const std::size_t count = recorder_->sensors().size();
  if (watts.size() != count)
    throw UserError(fmt::format("{} idle powers are given for {} sensors", watts.size(), count));
  std::vector<IdlePower> idle;
  for (const double power : watts) {
    if (!(power >= 0)) throw UserError("an idle power is a number of W, not below 0");
    idle.push_back({power, 0});
  }
  const std::lock_guard lock(mutex_);
  idle_ = std::move(idle);
}

RegionEnergy RegionMonitor::energy(const std::string& name, const std::vector<TimeSpan>& spans) const {
  require_here();
  double first = spans.empty() ? 0 : spans.front().from, last = 0, period = 0;
  for (const TimeSpan& span : spans) first = std::min(first, span.from), last = std::max(last, span.to);
  for (const auto& sensor : recorder_->sensors()) period = std::max(period, region_reading_period(sensor->info()));
  recorder_->wait(last + period);
  const std::vector<IdlePower> idle = this->idle();
  const std::vector<double> costs = recorder_->shares_reading();
  std::vector<SensorEnergy> energies;
  const std::vector<SensorTrace> traces = recorder_->traces(first - kMostMargin);
  for (std::size_t i = 0; i < traces.size(); ++i)
    energies.push_back(energy_of_regions(traces[i], spans, idle.empty() ? std::nullopt : std::optional(idle[i]),
                                         region_reading_period(traces[i].info), costs[i]));
  return sum_of(name, spans, std::move(energies));
}

}  // namespace ergotune
