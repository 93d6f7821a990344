#include "measure/observers/trace_observer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/power_trace.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

const ObservedQuantity kSettlingTime("settling_time", "s", "time from the first launch until power stays where it ends",
                                     Direction::minimise, true);

/// Converts readings to power: a counter's energy between its ticks; for other sensors, repeated values become one.
TraceSeries as_power(const SensorTrace& sensor, double zero) {
  TraceSeries series{sensor.info.id, {}, {}};
  const Reading* last = nullptr;
  for (const Reading& reading : sensor.readings) {
    if (last != nullptr && reading.value == last->value) continue;
    if (sensor.info.kind != SensorKind::cumulative_energy) {
      series.time.push_back(reading.time - zero);
      series.value.push_back(reading.value);
    } else if (last != nullptr) {
      // Several ticks are combined if they are finer than the reads; otherwise their time uncertainty dominates the
      // power.
      if (reading.time - last->time < 0.018) continue;
      series.time.push_back(0.5 * (reading.time + last->time) - zero);
      series.value.push_back((reading.value - last->value) / (reading.time - last->time));
    }
    last = &reading;
  }
  return series;
}

void add(TraceSeries& series, double time, const std::optional<double>& value) {
  if (!value) return;
  series.time.push_back(time);
  series.value.push_back(*value);
}

void note_gpu(const std::vector<std::pair<double, DeviceState>>& states, double zero, PowerTrace& trace) {
  TraceSeries core{"core_clock_mhz", {}, {}}, memory{"memory_clock_mhz", {}, {}}, heat{"temperature_c", {}, {}},
      volts{"core_voltage_v", {}, {}};
  std::map<std::string, PowerTrace::Reason> open;
  for (const auto& [when, state] : states) {
    const double t = when - zero;
    add(core, t, state.core_clock_mhz);
    add(memory, t, state.memory_clock_mhz);
    add(heat, t, state.temperature_c);
    add(volts, t, state.core_voltage_v);
    for (const std::string& name : state.clock_reasons)
      open.try_emplace(name, PowerTrace::Reason{name, t, t}).first->second.to = t;
    for (auto it = open.begin(); it != open.end();) {
      const auto& now = state.clock_reasons;
      const bool goes_on = std::ranges::find(now, it->first) != now.end();
      if (!goes_on) {
        it->second.to = t;
        trace.reasons.push_back(it->second);
      }
      it = goes_on ? std::next(it) : open.erase(it);
    }
  }
  for (const auto& [name, reason] : open) trace.reasons.push_back(reason);
  for (TraceSeries* series : {&core, &memory, &heat, &volts})
    if (!series->time.empty()) trace.gpu.push_back(std::move(*series));
}

class TraceObserver : public Observer {
 public:
  TraceObserver(EnergySources sources, TraceOptions options)
      : sources_(std::move(sources)), options_(std::move(options)) {}
  ~TraceObserver() override { stop(); }
  std::string name() const override { return "trace"; }
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  double wanted_mark_period() const override { return 0.01; }

  void register_configuration(const ObservedConfiguration& configuration) override {
    // A worker does not have the names of the execution parameters, which come last.
    const auto& names = *configuration.names;
    std::string text;
    for (std::size_t i = 0; i < configuration.values->size(); ++i)
      text += fmt::format("{}{}{}", i == 0 ? "" : ",", i < names.size() ? names[i] + "=" : std::string(),
                          (*configuration.values)[i].to_string());
    configuration_ = text;
    settled_.reset();
  }

  void before_start() override {
    stop();
    recorded_.clear();
    states_.clear();
    for (const auto& sensor : sources_.sensors) {
      sensor->restart();
      recorded_.push_back({sensor->info(), {}, {}});
    }
    ended_ = false;
    thread_ = std::thread([this] { record(); });
    pause(options_.before);
  }
  bool wants_more(const LaunchStream& so_far) override { return host_seconds() - so_far.queued_at < options_.seconds; }
  void after_finish() override {
    pause(options_.after);
    stop();
  }
  void finished(const LaunchStream& stream) override {
    PowerTrace trace;
    for (const SensorTrace& sensor : recorded_) trace.power.push_back(as_power(sensor, stream.queued_at));
    note_gpu(states_, stream.queued_at, trace);
    if (!stream.marks.empty()) {
      trace.load_seconds = stream.marks.back().host_time - stream.queued_at;
      trace.launches = stream.marks.back().launches;
    }
    for (const TraceSeries& series : trace.power) {
      const auto settling = settling_of(series, trace.load_seconds);
      if (settling && settling->seconds && !settled_) settled_ = {*settling->seconds, series.name};
    }
    const std::filesystem::path file = place();
    if (const int failure = write_file(file, to_csv(trace)); failure != 0)
      throw Error(fmt::format("cannot write the trace {}: {}", file.string(), std::strerror(failure)));
  }
  std::map<std::string, Quantity> results() override {
    if (!settled_) return {};
    return {{"settling_time", {settled_->first, 0, 1, "trace of power", settled_->second, Provenance::measured}}};
  }

 private:
  static void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  void stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void record() {
    while (!ended_) {
      const double now = host_seconds();
      for (std::size_t i = 0; i < sources_.sensors.size(); ++i) sources_.sensors[i]->read(recorded_[i].readings);
      if (sources_.monitor) states_.emplace_back(now, sources_.monitor->read());
      pause(std::max(options_.period - (host_seconds() - now), 1e-4));
    }
  }
  std::filesystem::path place() const {
    return options_.file.empty() ? trace_file(options_.folder, configuration_) : options_.file;
  }

  EnergySources sources_;
  TraceOptions options_;
  std::string configuration_;
  std::thread thread_;
  std::atomic<bool> ended_;
  std::vector<SensorTrace> recorded_;  ///< owned by the thread until it is joined
  std::vector<std::pair<double, DeviceState>> states_;
  std::optional<std::pair<double, std::string>> settled_;
};

}  // namespace

std::filesystem::path trace_file(const std::filesystem::path& folder, const std::string& configuration) {
  std::string name = configuration.substr(0, 150);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::strchr("=,.-_", c) == nullptr) c = '_';
  if (name != configuration) name += "-" + content_hash(configuration).substr(0, 8);
  return folder / (name + ".csv");
}

std::shared_ptr<Observer> make_trace_observer(EnergySources sources, TraceOptions options) {
  if (!(options.before >= 0) || !(options.seconds > 0) || !(options.after >= 0) ||
      options.before + options.seconds + options.after > 600)
    throw UserError("observer \"trace\": before, seconds and after are s, 600 in all at most, and seconds more than 0");
  if (options.file.empty()) {
    std::error_code failure;
    std::filesystem::create_directories(options.folder, failure);
    if (failure)
      throw UserError(fmt::format("observer \"trace\": the folder {} cannot be made: {}", options.folder.string(),
                                  failure.message()));
  }
  return std::make_shared<TraceObserver>(std::move(sources), std::move(options));
}

}  // namespace ergotune
