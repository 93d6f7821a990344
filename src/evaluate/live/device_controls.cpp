#include "evaluate/live/device_controls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/clock_watch.hpp"

namespace ergotune {
namespace {

constexpr auto kCore = ControlQuantity::core_clock_mhz;
constexpr auto kMemory = ControlQuantity::memory_clock_mhz;

Status status_of(ControlStatus status) {
  const bool refused_value = status == ControlStatus::invalid_value || status == ControlStatus::not_supported;
  return refused_value ? Status::unsupported : Status::launch_error;
}

// Warnings that state why a clock was reduced (the texts of DeviceState::clock_reasons).
bool is_clock_reason(const std::string& warning) {
  constexpr std::array reasons = {"power cap",   "thermal",    "hardware slowdown", "hardware thermal",
                                  "power brake", "sync boost", "display clocks"};
  return std::ranges::find(reasons, warning) != reasons.end();
}

bool has(const Measurement& measurement, const char* warning) {
  return std::ranges::find(measurement.warnings, warning) != measurement.warnings.end();
}

std::vector<std::string> reasons_in(const Measurement& measurement) {
  std::vector<std::string> reasons;
  std::copy_if(measurement.warnings.begin(), measurement.warnings.end(), std::back_inserter(reasons), is_clock_reason);
  return reasons;
}

}  // namespace

DeviceControls::DeviceControls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters)
    : session_(std::move(session)),
      parameters_(std::move(parameters)),
      monitor_(monitor_for_control(session_->control().reopen_id())),
      notes_seen_(session_->notes().size()) {
  looked_ = !session_->control().may_overlook_lock() || !monitor_;
}

std::optional<Measurement> DeviceControls::begin(const ControlSetting& setting, RunOptions& run) {
  disturbed_ = false;
  run.state_only = !looked_;
  if (looked_)
    if (auto refusal = apply(setting)) return refusal;
  run.watched = session_->control().reopen_id();
  run.clock_tolerance = session_->control().clock_tolerance();
  if (run.state_only) return std::nullopt;
  run.set_at = set_at_;
  if (const auto requested = setting.find(kCore); requested != setting.end())
    run.requested_clock_mhz = requested->second;
  return std::nullopt;
}

bool DeviceControls::end(const ControlSetting& setting, const RunOptions& run, Measurement& measurement,
                         bool& repeated) {
  disturbed_ = false;
  if (!run.state_only) return judge(setting, measurement, std::exchange(repeated, true));
  if (!usable(measurement.status)) return false;
  look(measurement);
  return true;
}

// A lost device is not a failure of the configuration.
void DeviceControls::require_device() const {
  if (const std::string lost = session_->control().lost(); !lost.empty())
    throw UserError(fmt::format("{}: {}; the same command goes on from here once it is back", id(), lost));
}

std::optional<Measurement> DeviceControls::apply(const ControlSetting& setting) {
  if (in_force_ == setting) return std::nullopt;
  const ControlResult result = session_->apply(setting);
  if (result.ok()) {
    in_force_ = setting;
    await(setting);
    return std::nullopt;
  }
  in_force_.reset();
  require_device();
  if (result.status == ControlStatus::device_lost)
    throw UserError(fmt::format("{}: {}; the same command goes on from here once it is back", id(), result.message));
  Measurement refused;
  refused.status = status_of(result.status);
  disturbed_ = refused.status != Status::unsupported;
  refused.message = result.message;
  refused.finished_at = wall_seconds();
  return refused;
}

/// A change takes effect with a delay. A change that is visible without load is awaited here, others by the runner.
void DeviceControls::await(const ControlSetting& setting) {
  latency_.reset();
  set_at_ = 0;
  const auto requested = setting.find(kCore);
  if (requested == setting.end() || !monitor_) return;
  const double begin = host_seconds();
  latency_ = seconds_until_core_clock(*monitor_, requested->second, session_->control().clock_tolerance());
  if (!latency_) set_at_ = begin;
}

void DeviceControls::look(const Measurement& under_load) {
  std::vector<std::string> reasons;
  for (std::string warning : under_load.warnings) {
    std::ranges::replace(warning, ' ', '_');
    reasons.push_back(std::move(warning));
  }
  std::optional<double> ran = under_load.value("core_clock");
  if (ran) ran = *ran * 1e-6;
  looked_ = true;
  const std::string foreign = session_->control().foreign_under_load(reasons, ran);
  if (foreign.empty()) return;
  if (!session_->taking_over())
    throw UserError(
        fmt::format("{}: {}; it shows under load only and could not be restored afterwards. Use --take-over to go on "
                    "and leave the device with its defaults",
                    id(), foreign));
  pending_note_ = fmt::format("{}: taken over: {}", id(), foreign);
}

// A driver may accept a limit, report it, and ignore it: the measured power shows that.
std::string DeviceControls::above_limit(const ControlSetting& requested, const Measurement& measurement) const {
  constexpr double kOvershoot = 1.15;  // tolerates overshoot before the device settles, and deviations between its
                                       // sensors
  const auto limit = requested.find(ControlQuantity::power_limit_w);
  const auto power = measurement.quantities.find("power");
  if (limit == requested.end() || power == measurement.quantities.end()) return {};
  const double watts = power->second.value, error = power->second.standard_error;
  // A sensor of another kind may measure more than this device.
  if (!power->second.sensor.starts_with(id() + "/") || watts - 2 * error <= kOvershoot * limit->second) return {};
  return fmt::format("power limit {:g} W was set, but {:.0f} W were drawn", limit->second, watts);
}

// No interface reports whether another program has locked a memory clock that the driver chooses. With such a lock, the
// same setting runs at another memory clock than before.
std::string DeviceControls::other_memory_clock(const ControlSetting& requested, Measurement& measurement) {
  constexpr double kStep = 0.1;  // smaller than the step between memory clocks; a mean may contain a ramp
  const auto ran = measurement.value("memory_clock");
  if (!ran) return {};
  const double mhz = *ran * 1e-6;
  const auto [known, is_new] = memory_ran_.try_emplace(requested, mhz);
  if (is_new) return {};
  if (mhz < (1 - kStep) * known->second)
    return fmt::format("memory clock: ran at {:.0f} MHz, where the same setting ran at {:.0f} MHz before", mhz,
                       known->second);
  if (mhz > (1 + kStep) * known->second) {
    measurement.warnings.push_back(
        fmt::format("the memory clock ran at {:.0f} MHz, earlier configurations of this setting at {:.0f} MHz", mhz,
                    known->second));
    known->second = mhz;
  }
  return {};
}

/// Describes the deviating setting; empty if it ran as requested or its own power limit reduced the clock.
std::string DeviceControls::ran_elsewhere(const ControlSetting& requested, Measurement& measurement) {
  if (const ControlResult set = session_->check(); !set.ok()) return set.message;
  const double tolerance = session_->control().clock_tolerance();
  const std::vector<std::string> reasons = reasons_in(measurement);
  const auto clock = requested.find(kCore);
  const auto ran = measurement.value("core_clock");
  std::string capped;
  if (clock != requested.end() && ran) {
    const double mhz = *ran * 1e-6;
    capped = describe_clock_outcome(clock->second, mhz, reasons, tolerance);
    // A binding power limit is part of the setting: the same setting gives the same clock again.
    if (!capped.empty() && (mhz > clock->second || !has(measurement, "power cap"))) return capped;
  }
  for (const std::string& warning : measurement.warnings)
    if (warning.starts_with(ClockWatch::kChanged) || warning.starts_with(ClockWatch::kHeldDown)) return warning;
  if (const std::string text = above_limit(requested, measurement); !text.empty()) return text;
  if (!capped.empty()) measurement.warnings.push_back(std::move(capped));
  const auto memory = requested.find(kMemory);
  if (const auto mhz = measurement.value("memory_clock"); memory != requested.end() && mhz) {
    const std::string text = describe_clock_outcome(memory->second, *mhz * 1e-6, reasons, tolerance);
    if (!text.empty()) return "memory clock: " + text;
  } else if (memory == requested.end()) {
    if (std::string text = other_memory_clock(requested, measurement); !text.empty()) return text;
  }
  if (clock != requested.end() && !ran && !noted_unwatched_) {
    noted_unwatched_ = true;
    measurement.warnings.push_back("no clock can be read here: the clock that ran is not checked");
  }
  return {};
}

bool DeviceControls::judge(const ControlSetting& requested, Measurement& measurement, bool again) {
  require_device();
  const auto notes = session_->notes();
  for (; notes_seen_ < notes.size(); ++notes_seen_) measurement.warnings.push_back(notes[notes_seen_]);
  if (!pending_note_.empty()) measurement.warnings.push_back(std::exchange(pending_note_, {}));
  if (latency_) {
    measurement.quantities["clock_latency"] = {*latency_, 0, 1, "device monitor", {}, Provenance::measured};
    latency_.reset();
  }
  set_at_ = 0;
  if (!usable(measurement.status)) return false;
  const std::string text = ran_elsewhere(requested, measurement);
  if (text.empty()) return false;
  in_force_.reset();
  session_->doubt();
  if (!again) return true;
  disturbed_ = true;
  measurement.status = Status::unsupported;
  measurement.message = fmt::format("{}, and so again after it was set once more", text);
  std::erase_if(measurement.quantities, [](const auto& entry) {
    return entry.first != "core_clock" && entry.first != "memory_clock" && entry.first != "temperature";
  });
  measurement.times.clear();
  return false;
}

}  // namespace ergotune
