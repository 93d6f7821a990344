#include "measure/timing.hpp"

#include <algorithm>
#include <cmath>

namespace ergotune {

Marker& MarkerPool::operator[](std::size_t i) {
  while (markers_.size() <= i) markers_.push_back(device_.make_marker());
  return *markers_[i];
}

double Timer::once(Workload& workload) {
  device_.record(markers_[0]);
  workload.launch(1);
  device_.record(markers_[1]);
  device_.synchronise();
  return device_.seconds_between(markers_[0], markers_[1]);
}

void Timer::flush() {
  if (!flush_) {
    // Twice the cache, because a write-back cache may keep lines of a buffer of its own size alive.
    double bytes = 0x1p25;  // 32 MiB
    if (const auto size = device_.info().properties.find("device.l2_bytes"); size != device_.info().properties.end())
      bytes = std::max(bytes, 2 * size->second.as_real());
    flush_ = device_.allocate(static_cast<std::size_t>(bytes));
  }
  device_.fill(*flush_, ++flush_byte_);
}

void Timer::unobserved(Workload& workload, std::size_t samples, std::size_t launches,
                       std::vector<double>& out) {
  if (options_.cold_cache) {
    for (std::size_t i = 0; i < samples; ++i) {
      flush();
      device_.record(markers_[2 * i]);
      workload.launch(1);
      device_.record(markers_[2 * i + 1]);
    }
    device_.synchronise();
    for (std::size_t i = 0; i < samples; ++i) {
      out.push_back(device_.seconds_between(markers_[2 * i], markers_[2 * i + 1]));
    }
    return;
  }
  device_.record(markers_[0]);
  for (std::size_t i = 0; i < samples; ++i) {
    workload.launch(launches);
    device_.record(markers_[i + 1]);
  }
  device_.synchronise();
  for (std::size_t i = 0; i < samples; ++i) {
    out.push_back(device_.seconds_between(markers_[i], markers_[i + 1]) / static_cast<double>(launches));
  }
}

void Timer::observed(Workload& workload, std::size_t samples, std::size_t launches,
                     const RepetitionHooks& hooks, std::vector<double>& out) {
  for (std::size_t i = 0; i < samples; ++i) {
    if (options_.cold_cache) {
      flush();
      device_.synchronise();
    }
    hooks.before_start();
    device_.record(markers_[0]);
    workload.launch(launches);
    device_.record(markers_[1]);
    hooks.after_start();
    device_.synchronise();
    hooks.after_finish();
    out.push_back(device_.seconds_between(markers_[0], markers_[1]) / static_cast<double>(launches));
  }
}

TimingResult Timer::measure(Workload& workload, double expected, double give_up_above,
                            const std::function<void()>& between, const RepetitionHooks* hooks) {
  TimingResult result;
  if (!options_.cold_cache) {
    const double wanted = options_.min_sample_seconds / std::max(expected, 1e-9);
    result.launches_per_sample = static_cast<std::size_t>(std::clamp(std::ceil(wanted), 1.0, 20000.0));
  }
  const double sample_seconds = std::max(expected * static_cast<double>(result.launches_per_sample), 1e-9);
  const auto most = static_cast<std::size_t>(std::max(options_.max_repeats, 2));
  std::size_t next = static_cast<std::size_t>(std::max(options_.min_repeats, 2));
  // A slow kernel has little noise for its length: three samples are a fair first look.
  if (sample_seconds * static_cast<double>(next) > options_.max_seconds)
    next = std::min<std::size_t>(next, 3);
  double spent = 0;
  while (true) {
    next = std::min(next, most - result.samples.size());
    const std::size_t before = result.samples.size();
    if (between) between();
    if (hooks) {
      observed(workload, next, result.launches_per_sample, *hooks, result.samples);
    } else {
      unobserved(workload, next, result.launches_per_sample, result.samples);
    }
    for (std::size_t i = before; i < result.samples.size(); ++i) {
      spent += result.samples[i] * static_cast<double>(result.launches_per_sample);
    }
    result.estimate = estimate_time(result.samples);
    result.converged = result.estimate.relative_half_width <= options_.precision;
    if (result.converged) return result;
    const double half_width = result.estimate.relative_half_width * result.estimate.value;
    if (result.estimate.value - half_width > give_up_above) {
      result.gave_up = true;
      return result;
    }
    if (result.samples.size() >= most || spent >= options_.max_seconds) return result;
    // Twice as many as there are, but never a batch that goes far past the cap.
    const double each = spent / static_cast<double>(result.samples.size());
    const double room = (options_.max_seconds - spent) / std::max(each, 1e-9);
    next = std::min<std::size_t>({static_cast<std::size_t>(room) + 1, result.samples.size(), 256});
  }
}

}  // namespace ergotune
