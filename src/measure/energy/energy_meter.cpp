// Records data for the estimators, and decides when there is enough of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.hpp"
#include "base/live_file.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {
namespace {

/// Returns the power in W according to a sensor's last readings; NaN if they are insufficient.
double power_now(const SensorTrace& sensor) {
  if (sensor.readings.empty()) return NAN;
  if (sensor.info.kind != SensorKind::cumulative_energy) return sensor.readings.back().value;
  // Power between two ticks, each at the time at which it was first seen.
  const auto end = sensor.readings.rend();
  const auto first_seen = [end](auto reading) {
    while (std::next(reading) != end && std::next(reading)->value == reading->value) ++reading;
    return reading;
  };
  const auto tick = first_seen(sensor.readings.rbegin());
  for (auto before = std::next(tick); before != end; ++before) {
    before = first_seen(before);
    if (std::next(before) == end) break;  // the time of the earliest tick is unknown
    if (tick->time - before->time >= 0.08) return (tick->value - before->value) / (tick->time - before->time);
  }
  return NAN;
}

/// Publishes readings that are taken anyway for viewers of the session.
void show_live(const EnergyTrace& trace, const DeviceState& gpu, bool settled) {
  LiveFile* live = live_file();
  if (!live) return;
  LiveSample sample;
  sample.time = wall_seconds();
  sample.power_w = static_cast<float>(trace.sensors.empty() ? NAN : power_now(trace.sensors.front()));
  if (std::isnan(sample.power_w)) sample.power_w = static_cast<float>(gpu.power_w.value_or(NAN));
  sample.core_mhz = static_cast<float>(gpu.core_clock_mhz.value_or(NAN));
  sample.memory_mhz = static_cast<float>(gpu.memory_clock_mhz.value_or(NAN));
  sample.temperature_c = static_cast<float>(gpu.temperature_c.value_or(NAN));
  sample.window = settled ? 1 : 0;
  sample.writer = static_cast<std::uint32_t>(::getpid());
  const std::string reasons = fmt::format("{}", fmt::join(gpu.clock_reasons, ","));
  reasons.copy(sample.reasons, sizeof sample.reasons - 1);
  live->add(sample);
}

void end_live() {
  LiveSample end;
  end.time = wall_seconds();
  end.power_w = end.core_mhz = end.memory_mhz = end.temperature_c = NAN;
  end.window = 2;
  end.writer = static_cast<std::uint32_t>(::getpid());
  if (LiveFile* live = live_file()) live->add(end);
}

}  // namespace

void MeterTime::sleep_on_host(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

EnergyMeter::EnergyMeter(std::vector<std::unique_ptr<Sensor>> sensors, std::unique_ptr<DeviceMonitor> monitor,
                         EnergyOptions options, MeterTime time)
    : sensors_(std::move(sensors)), monitor_(std::move(monitor)), options_(options), time_(std::move(time)) {
  double shortest = INFINITY;
  for (const auto& sensor : sensors_) shortest = std::min(shortest, shortest_measurement(sensor->info()));
  budget_ = options_.budget > 0 ? options_.budget : std::max(1.0, options_.settle_at_least + 0.1 + 1.25 * shortest);
}

void EnergyMeter::register_configuration(const ObservedConfiguration& configuration) {
  configuration_ = configuration;
  // Must precede the first use of the GPU by this process.
  if (!options_.idle_power) measure_idle_power();
}

void EnergyMeter::measure_idle_power() {
  std::vector<Reading> readings;
  if (sensors_.empty()) return;
  Sensor& sensor = *sensors_.front();
  sensor.restart();
  const double began = time_.now(), end = began + options_.idle_pause;
  while (time_.now() < end) {
    sensor.read(readings);
    time_.sleep(0.005);
  }
  // Clocks and windows settle in the first half; batches of the second half show the scatter.
  std::erase_if(readings, [&](const Reading& r) { return r.time < began + 0.5 * options_.idle_pause; });
  std::vector<double> batches;
  constexpr std::size_t kBatches = 5;
  const std::size_t each = readings.size() / kBatches;
  for (std::size_t b = 0; b < kBatches && each >= 2; ++b) {
    const Reading &first = readings[b * each], &last = readings[(b + 1) * each - 1];
    if (sensor.info().kind == SensorKind::cumulative_energy) {
      if (last.time > first.time) batches.push_back((last.value - first.value) / (last.time - first.time));
    } else {
      double sum = 0;
      for (std::size_t i = b * each; i < (b + 1) * each; ++i) sum += readings[i].value;
      batches.push_back(sum / static_cast<double>(each));
    }
  }
  const double watts = batches.size() == kBatches ? mean(batches) : 0;
  if (!(watts > 0)) return;  // unknown idle power
  options_.idle_power = watts;
  options_.idle_power_error = std::sqrt(variance(batches) / static_cast<double>(batches.size()));
}

void EnergyMeter::before_start() {
  const std::lock_guard lock(mutex_);
  trace_ = EnergyTrace{};
  result_ = EnergyResult{};
  settled_ = gave_up_ = false;
  consecutive_precise_ = 0;
  next_evaluation_ = next_gpu_ = next_pause_ = 0;
  for (const auto& sensor : sensors_) {
    sensor->restart();
    trace_.sensors.push_back({sensor->info(), {}, {}});
  }
}

void EnergyMeter::during() {
  const double start = time_.now();
  for (std::size_t i = 0; i < sensors_.size(); ++i) {
    // The driver's call may take long; it must not block the launching thread.
    std::vector<Reading> fresh;
    const ReadStatus status = sensors_[i]->read(fresh);
    const std::lock_guard lock(mutex_);
    if (i >= trace_.sensors.size()) return;
    auto& trace = trace_.sensors[i];
    trace.readings.insert(trace.readings.end(), fresh.begin(), fresh.end());
    if (status == ReadStatus::failed || status == ReadStatus::not_supported) trace.failure = sensors_[i]->last_error();
  }
  if (start >= next_gpu_) {
    next_gpu_ = start + options_.monitor_period;
    DeviceState state;
    if (monitor_) state = monitor_->read();
    const std::lock_guard lock(mutex_);
    show_live(trace_, state, settled_);
    if (monitor_) trace_.gpu.emplace_back(start, std::move(state));
  }
  // Readings are at least as far apart as a read takes, so that reading does not load the launching host.
  const double used = time_.now() - start;
  time_.sleep(std::max(options_.sensor_period - used, std::min(used, 0.01)));
}

bool EnergyMeter::cannot_become_best(const EnergyResult& so_far) const {
  const auto found = so_far.quantities.find(configuration_.objective_quantity);
  if (found == so_far.quantities.end()) return false;
  // Wider than the reported interval, because the test is repeated.
  return found->second.value - 3.5 * found->second.standard_error > configuration_.give_up_above;
}

bool EnergyMeter::wants_more(const LaunchStream& so_far) {
  const double now = time_.now();
  if (now < next_evaluation_) return true;
  next_evaluation_ = now + 0.02;
  const double spent = now - so_far.queued_at;
  if (spent >= budget_) return false;
  EnergyTrace snapshot;
  {
    const std::lock_guard lock(mutex_);
    const bool all_failed = std::ranges::all_of(
        trace_.sensors, [](const SensorTrace& t) { return !t.failure.empty() && t.readings.empty(); });
    if (all_failed) return false;
    snapshot = trace_;
  }
  snapshot.stream = so_far;
  if (!settled_) {
    const auto from = settled_from(snapshot, options_, now);
    if (from || spent >= options_.settle_at_most * budget_) {
      const std::lock_guard lock(mutex_);
      settled_ = true;
      trace_.settled_at = from.value_or(now);
      result_.settled = from.has_value();
    }
    return true;
  }
  if (now - snapshot.settled_at < options_.window_at_least) return true;
  next_evaluation_ = now + 0.05;
  const EnergyResult result = estimate_energy(snapshot, options_);
  if (result.status == Status::unsupported) return true;
  if (options_.whole_budget) return true;
  if (cannot_become_best(result)) {
    gave_up_ = true;
    return false;
  }
  // Required twice in a row, since a single sufficient result is often chance.
  consecutive_precise_ = precise_enough(result, options_) ? consecutive_precise_ + 1 : 0;
  return consecutive_precise_ < 2;
}

double EnergyMeter::wanted_pause() {
  // Only needed if a sensor sleeps between its windows and a launch is long enough to alias with them.
  const double launch = configuration_.expected_launch_seconds;
  if (!settled_) return 0;
  double period = 0;
  for (const auto& sensor : sensors_) {
    const SensorInfo& info = sensor->info();
    if (info.window > 0 && info.window < 0.8 * info.update_period && launch > 0.25 * info.window)
      period = std::max(period, info.update_period);
  }
  const double now = time_.now();
  if (period == 0 || now < next_pause_) return 0;
  Random random(0x6a177e7 + ++jitter_);
  next_pause_ = now + (2 + 2 * random.uniform()) * period;
  return std::max(1e-3, random.uniform() * std::min(launch, period));
}

void EnergyMeter::finished(const LaunchStream& stream) {
  end_live();
  const std::lock_guard lock(mutex_);
  trace_.stream = stream;
  const bool settled = result_.settled;
  if (trace_.settled_at == 0 && !stream.marks.empty()) trace_.settled_at = stream.marks.front().host_time;
  result_ = estimate_energy(trace_, options_);
  result_.settled = settled;
  if (!settled && result_.status != Status::unsupported)
    result_.warnings.push_back("power had not settled when the measurement began");
  if (gave_up_) {
    // The value is precise enough for the decision: the configuration cannot be the best.
    result_.status = Status::ok;
    result_.message.clear();
    result_.warnings.push_back("stopped early: it can no longer win");
  }
  if (!options_.keep_trace) trace_ = EnergyTrace{};
}

Status EnergyMeter::verdict(std::string& message) {
  message = result_.message;
  return result_.status;
}

EnergySources energy_sources(const std::vector<std::string>& ids, const std::string& device_name,
                             const std::string& uuid, const std::string& pci_address, bool is_cpu) {
  EnergySources sources;
  std::string gpu_uuid = uuid, gpu_pci = pci_address;
  std::vector<std::string> looked_for;
  for (const auto& id : ids) {
    sources.sensors.push_back(open_sensor(id));
    const SensorInfo& info = sources.sensors.back()->info();
    if (gpu_uuid.empty() && gpu_pci.empty()) gpu_uuid = info.uuid, gpu_pci = info.pci_address;
  }
  if (ids.empty()) {
    sources.sensors = sensors_for_device(uuid, pci_address, is_cpu, &looked_for);
    if (sources.sensors.empty())
      throw UserError(
          fmt::format("{} has no energy or power sensor that can be read here, and none is invented. Looked for:\n  "
                      "{}\nName one with --sensor (see \"ergotune devices\"), or tune for time.",
                      device_name, fmt::join(looked_for, "\n  ")));
  }
  sources.monitor = monitor_for_device(gpu_uuid, gpu_pci);
  return sources;
}

}  // namespace ergotune
