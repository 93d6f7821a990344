// A GPU of the fake NVML in virtual time, with a stream of launches on it and its sensors polled as
// EnergyMeter polls them: hundreds of measurements with known truth in a second or two.
#pragma once

#include <memory>
#include <vector>

#include "ergotune/random.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "measure/energy/energy.hpp"

namespace ergotune {

class EnergyBench {
 public:
  enum class Source { counter, samples, instant, average };

  explicit EnergyBench(const std::string& generation, std::uint64_t seed)
      : state_(std::make_unique<fake_nvml::State>()), random_(seed) {
    fake_nvml::initialise(*state_, "virtual=1 generation=" + generation + " seed=" + std::to_string(seed + 1));
    state_->device_count = 1;
    state_->virtual_time += random_.uniform();  // any phase against the sensors
  }
  fake_nvml::Gpu& gpu() { return state_->gpus[0]; }
  /// After the test changed the GPU.
  void start() { fake_nvml::start(gpu(), now()); }
  double now() const { return state_->virtual_time; }
  void pass(double seconds) {
    state_->virtual_time += seconds;
    fake_nvml::advance(*state_, gpu(), now());
  }

  /// Sensors to be polled, with the semantics that the estimators are told.
  void add(Source source, const SensorInfo& info) {
    sources_.push_back(source);
    infos_.push_back(info);
  }

  /// A launch: seconds at the top clock, split in a clock-bound and a fixed part.
  void set_kernel(double clocked_seconds, double fixed_seconds, double activity, double activity_low = -1,
                  double high_fraction = 1) {
    item_ = {};
    item_.mega_cycles = clocked_seconds * fake_nvml::top_clock(gpu());
    item_.seconds = fixed_seconds;
    item_.activity = activity;
    item_.activity_low = activity_low < 0 ? activity : activity_low;
    item_.high_fraction = high_fraction;
  }

  /// Keeps the GPU busy with the kernel for a while, unobserved.
  void warm_up(double seconds) {
    const double each = fake_nvml::launch_seconds(item_, fake_nvml::top_clock(gpu()));
    item_.count = static_cast<std::uint64_t>(std::max(1.0, seconds / each));
    fake_nvml::enqueue(*state_, gpu(), item_);
    pass(seconds);
  }

  /// A stream of launches until `options` are met or the budget is spent; the trace as EnergyMeter would have it.
  EnergyTrace run(const EnergyOptions& options, double budget, bool stop_early = true) {
    EnergyTrace trace;
    for (const auto& info : infos_) trace.sensors.push_back({info, {}, {}});
    const double each = fake_nvml::launch_seconds(item_, fake_nvml::top_clock(gpu()));
    item_.count = static_cast<std::uint64_t>(std::max(1.0, std::round(0.005 / each)));
    trace.stream.queued_at = now();
    trace.stream.marks.push_back({now(), 0, 0, 0});
    std::vector<std::uint64_t> pending;
    for (int i = 0; i < 3; ++i) pending.push_back(fake_nvml::enqueue(*state_, gpu(), item_));
    const double start = now();
    double next_look = 0, pause_at = 0;
    bool settled = false;
    int good = 0;
    bool more = true;
    std::vector<double> last_sample(infos_.size(), -1);
    while (more || !pending.empty()) {
      pass(0.001 + 0.0003 * random_.uniform());
      for (std::size_t i = 0; i < infos_.size(); ++i) poll(i, trace.sensors[i], last_sample[i]);
      if (trace.gpu.empty() || now() - trace.gpu.back().first > 0.1) {
        DeviceState state;
        state.core_clock_mhz = gpu().clock_mhz;
        state.temperature_c = gpu().temperature;
        trace.gpu.emplace_back(now(), state);
      }
      while (!pending.empty() && pending.front() < gpu().queue_head) {
        const auto& done = gpu().queue[pending.front() % fake_nvml::kQueue];
        const double late = 20e-6 + 100e-6 * random_.uniform();
        trace.stream.marks.push_back(
            {done.end + late, late, done.end - start, trace.stream.marks.back().launches + done.count});
        pending.erase(pending.begin());
        if (more && !(jitter > 0 && pause_at > 0 && now() > pause_at))
          pending.push_back(fake_nvml::enqueue(*state_, gpu(), item_));
      }
      if (more && pending.empty() && jitter > 0) {  // the pause
        const double until = now() + jitter * random_.uniform();
        while (now() < until) {
          pass(0.001);
          for (std::size_t i = 0; i < infos_.size(); ++i) poll(i, trace.sensors[i], last_sample[i]);
        }
        trace.stream.marks.push_back({now() + 2e-5, 0, now() - start, trace.stream.marks.back().launches});
        for (int i = 0; i < 3; ++i) pending.push_back(fake_nvml::enqueue(*state_, gpu(), item_));
        pause_at = now() + 0.2 + 0.2 * random_.uniform();
      }
      if (!more || now() - start < next_look) continue;
      next_look = now() - start + 0.02;
      if (now() - start >= budget) {
        more = false;
      } else if (!settled) {
        const auto from = settled_from(trace, options, now());
        if (from || now() - start >= options.settle_at_most * budget) {
          settled = true;
          trace.settled_at = from.value_or(now());
          pause_at = now() + 0.1;
        }
      } else if (stop_early && now() - trace.settled_at > options.window_at_least) {
        next_look += 0.03;
        good = precise_enough(estimate_energy(trace, options), options) ? good + 1 : 0;
        more = good < 2;
      }
    }
    if (trace.settled_at == 0) trace.settled_at = start;
    return trace;
  }
  double jitter = 0;  ///< longest pause, s

 private:
  void poll(std::size_t i, SensorTrace& trace, double& last_sample) {
    auto& b = gpu();
    auto power = [&](const fake_nvml::PowerSensorModel& model) {
      const double tick = fake_nvml::last_tick(model.phase, model.period, b.time);
      trace.readings.push_back({now(), fake_nvml::power_reading(b, model, tick)});
    };
    switch (sources_[i]) {
      case Source::counter:
        trace.readings.push_back({now(), b.counter_energy});
        break;
      case Source::instant:
        power(b.instant.supported ? b.instant : b.usage);
        break;
      case Source::average:
        power(b.average);
        break;
      case Source::samples: {
        const double tick = fake_nvml::last_tick(b.samples.phase, b.samples.period, b.time);
        if (last_sample < 0) last_sample = tick;
        for (double t = last_sample + b.samples.period; t <= tick + 1e-9; t += b.samples.period)
          trace.readings.push_back({t, fake_nvml::power_reading(b, b.samples, t)});
        last_sample = std::max(last_sample, tick);
        break;
      }
    }
  }

  std::unique_ptr<fake_nvml::State> state_;
  Random random_;
  std::vector<Source> sources_;
  std::vector<SensorInfo> infos_;
  fake_nvml::WorkItem item_{};
};

inline SensorInfo sensor_info(const std::string& id, SensorKind kind, double period, double window, double lag = 0,
                              double step = 1e-3) {
  SensorInfo info;
  info.id = id;
  info.kind = kind;
  info.update_period = period;
  info.window = window;
  info.lag = lag;
  info.unit_step = step;
  return info;
}

}  // namespace ergotune
