#include "measure/energy/clock_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "power/controls/control.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kMost = 100'000;  // 25 minutes of reads every 15 ms
constexpr double kEdges = 0.1;          // largest share of reads that may coincide with a clock change

bool rests(const DeviceState& state) {
  return std::ranges::find(state.clock_reasons, "idle") != state.clock_reasons.end();
}

void note_mean(Measurement& measurement, const char* name, const std::vector<double>& values, double scale) {
  if (values.empty() || measurement.quantities.contains(name)) return;
  RunningStatistics all;
  for (const double value : values) all.add(value * scale);
  measurement.quantities[name] = {
      all.mean(), all.standard_error(), static_cast<std::int64_t>(values.size()), "device monitor",
      {},         Provenance::measured, static_cast<double>(values.size()) - 1};
}

}  // namespace

void ClockWatch::open(const std::string& control) {
  if (control == control_) return;
  end();
  control_ = control;
  monitor_ = control.empty() ? nullptr : monitor_for_control(control);
}

DeviceState ClockWatch::look() {
  const std::lock_guard lock(mutex_);
  return monitor_ ? monitor_->read() : DeviceState{};
}

void ClockWatch::begin(double period) {
  end();
  forget();
  seconds_ = 0;
  if (!monitor_) return;
  active_ = true;
  thread_ = std::thread([this, period] { loop(period); });
}

void ClockWatch::end() {
  active_ = false;
  if (thread_.joinable()) thread_.join();
}

void ClockWatch::forget() {
  const std::lock_guard lock(mutex_);
  states_.clear();
  looks_ = 0;
}

void ClockWatch::loop(double period) {
  double next = 0;
  while (active_) {
    if (const double now = host_seconds(); now >= next) {
      const std::lock_guard lock(mutex_);
      if (states_.size() < kMost) states_.push_back(monitor_->read());
      ++looks_;
      next = host_seconds() + period;
      seconds_ = seconds_ + next - period - now;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(0.015, period)));
  }
}

void ClockWatch::note(Measurement& measurement, double requested_mhz, double tolerance, bool all_reasons) const {
  const std::lock_guard lock(mutex_);
  note_clock_states(states_, measurement, requested_mhz, tolerance, all_reasons);
}

bool held_by_power_limit(const DeviceState& state) {
  constexpr std::array kOthers = {"thermal", "hardware_slowdown", "hardware_thermal", "power_brake", "sync_boost"};
  const auto& reasons = state.clock_reasons;
  const auto is_there = [&](const char* reason) { return std::ranges::find(reasons, reason) != reasons.end(); };
  return is_there("power_cap") && std::ranges::none_of(kOthers, is_there);
}

void note_clock_states(std::span<const DeviceState> looks, Measurement& measurement, double requested_mhz,
                       double tolerance, bool all_reasons) {
  std::vector<double> core, memory, temperature, throttled;
  std::set<std::string> reasons;
  RunningStatistics held_down;  ///< MHz, below the requested clock for another reason than the power limit
  for (const DeviceState& state : looks) {
    if (rests(state)) continue;
    if (state.core_clock_mhz) {
      core.push_back(*state.core_clock_mhz);
      const bool below =
          *state.core_clock_mhz < requested_mhz && !same_clock(requested_mhz, *state.core_clock_mhz, tolerance);
      if (below && !held_by_power_limit(state)) held_down.add(*state.core_clock_mhz);
    }
    if (state.memory_clock_mhz) memory.push_back(*state.memory_clock_mhz);
    if (state.temperature_c) temperature.push_back(*state.temperature_c);
    if (state.throttled_share) throttled.push_back(*state.throttled_share);
    reasons.insert(state.clock_reasons.begin(), state.clock_reasons.end());
  }
  note_mean(measurement, "core_clock", core, 1e6);
  note_mean(measurement, "memory_clock", memory, 1e6);
  note_mean(measurement, "temperature", temperature, 1);
  note_mean(measurement, "throttled_share", throttled, 1);
  const auto warn = [&](std::string warning) {
    auto& warnings = measurement.warnings;
    if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(std::move(warning));
  };
  for (std::string reason : reasons) {
    // A limit that ergotune itself requested is not reported.
    if (!all_reasons && reason == "application_clocks") continue;
    std::ranges::replace(reason, '_', ' ');
    warn(reason);
  }
  if (requested_mhz <= 0) return;
  // Clock and reasons are read one after the other, so that a read during a change may match neither.
  if (reasons.contains("power_cap")) {
    const auto share =
        static_cast<double>(held_down.count()) / static_cast<double>(std::max<std::size_t>(1, core.size()));
    if (share > kEdges)
      warn(fmt::format("{}, at {:.0f} MHz in {:.0f} % of the looks", ClockWatch::kHeldDown, held_down.mean(),
                       100 * share));
    return;
  }
  if (core.size() < 4) return;
  // Medians of both halves, since a single read may coincide with a change.
  const std::size_t half = core.size() / 2;
  const double before = median(std::span(core).first(half)), after = median(std::span(core).subspan(half));
  if (!same_clock(before, after, tolerance))
    warn(fmt::format("{}, from {:.0f} to {:.0f} MHz", ClockWatch::kChanged, before, after));
}

}  // namespace ergotune
