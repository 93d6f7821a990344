// Saves and restores the settings of an NVIDIA GPU.
#include <fmt/format.h>

#include "ergotune/error.hpp"
#include "power/controls/nvml_control.hpp"

namespace ergotune {
namespace {

constexpr const char* kLockedCore = "nvml-locked-core-clocks";
constexpr const char* kLockedMemory = "nvml-locked-memory-clocks";
constexpr const char* kTaken = "taken";  // value of a locked-clocks step after the GPU has accepted a lock
constexpr const char* kApplicationClocks = "nvml-application-clocks";
constexpr const char* kPowerLimit = "nvml-power-limit";
constexpr const char* kPersistence = "nvml-persistence-mode";

ControlResult bad_value(const RestoreStep& step) {
  return {ControlStatus::invalid_value, fmt::format("{}: \"{}\" is not a value", step.kind, step.value)};
}

}  // namespace

std::vector<RestoreStep> NvmlControl::snapshot() {
  const auto& f = library_->functions();
  std::vector<RestoreStep> steps;
  const auto required = [&](int code, const char* what) {
    if (code == nvml::kOk) return true;
    if (missing(code)) return false;
    throw UserError(fmt::format("{}: its {} cannot be read ({}), so it could not be restored: nothing is changed", id(),
                                what, library_->error(code)));
  };
  if (f.reset_gpu_locked_clocks) steps.push_back({kLockedCore, gpu_.uuid, "", ControlQuantity::core_clock_mhz});
  if (f.reset_memory_locked_clocks) steps.push_back({kLockedMemory, gpu_.uuid, "", ControlQuantity::memory_clock_mhz});
  unsigned memory = 0, core = 0;
  const int clocks = application_clocks(f.application_clock, memory, core);
  application_clocks_saved_ = required(clocks, "application clocks");
  if (application_clocks_saved_)
    for (const auto quantity : {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz})
      steps.push_back({kApplicationClocks, gpu_.uuid, fmt::format("{} {}", memory, core), quantity});
  unsigned limit = 0;
  power_limit_saved_ = required(nvml::call(f.power_limit, gpu_.handle, &limit), "power limit");
  if (power_limit_saved_) steps.push_back({kPowerLimit, gpu_.uuid, std::to_string(limit)});
  int persistence = 0;
  persistence_saved_ = required(nvml::call(f.persistence_mode, gpu_.handle, &persistence), "persistence mode");
  // Last, since without persistence the driver may discard the other settings at any time.
  if (persistence_saved_) steps.push_back({kPersistence, gpu_.uuid, std::to_string(persistence)});
  return steps;
}

void NvmlControl::confirm(RestoreStep& step) const {
  if (step.quantity && lock_taken_.contains(*step.quantity) && (step.kind == kLockedCore || step.kind == kLockedMemory))
    step.value = kTaken;
}

// Reads a setting, writes it if it differs, and reads it again.
template <class T>
ControlResult NvmlControl::put_back(const RestoreStep& step, T wanted, const EntryPoint<int(nvml::Handle, T*)>& get,
                                    const EntryPoint<int(nvml::Handle, T)>& set) const {
  T now{};
  if (nvml::call(get, gpu_.handle, &now) == nvml::kOk && now == wanted) return {};
  if (const int code = nvml::call(set, gpu_.handle, wanted); code != nvml::kOk)
    return {status_of(code), fmt::format("{}: {}", step.kind, library_->error(code))};
  const int code = nvml::call(get, gpu_.handle, &now);
  if (code != nvml::kOk)
    return {status_of(code),
            fmt::format("{}: written, but it cannot be verified: {}", step.kind, library_->error(code))};
  if (now == wanted) return {};
  return {ControlStatus::failed, fmt::format("{}: it is {} after {} was written", step.kind, now, wanted)};
}

ControlResult NvmlControl::restore(const RestoreStep& step) {
  if (step.target != gpu_.uuid)
    return {ControlStatus::invalid_value, fmt::format("{} {} is not a step of this device", step.kind, step.target)};
  const auto& f = library_->functions();
  const auto result = [&](int code) -> ControlResult {
    if (code == nvml::kOk) return {};
    return {status_of(code), fmt::format("{}: {}", step.kind, library_->error(code))};
  };
  if (step.kind == kLockedCore || step.kind == kLockedMemory) {
    const int code =
        nvml::call(step.kind == kLockedCore ? f.reset_gpu_locked_clocks : f.reset_memory_locked_clocks, gpu_.handle);
    // A GPU without this lock has none in force, but a GPU that accepted it must also release it.
    return missing(code) && step.value != kTaken ? ControlResult{} : result(code);
  }
  if (step.kind == kPowerLimit) {
    unsigned wanted = 0;
    if (std::sscanf(step.value.c_str(), "%u", &wanted) != 1) return bad_value(step);
    return put_back(step, wanted, f.power_limit, f.set_power_limit);
  }
  if (step.kind == kPersistence) {
    int wanted = 0;
    if (std::sscanf(step.value.c_str(), "%d", &wanted) != 1) return bad_value(step);
    return put_back(step, wanted, f.persistence_mode, f.set_persistence_mode);
  }
  if (step.kind == kApplicationClocks) return restore_application_clocks(step);
  return {ControlStatus::invalid_value, fmt::format("unknown kind of step \"{}\"", step.kind)};
}

ControlResult NvmlControl::restore_application_clocks(const RestoreStep& step) {
  const auto& f = library_->functions();
  unsigned memory = 0, core = 0;
  if (std::sscanf(step.value.c_str(), "%u %u", &memory, &core) != 2) return bad_value(step);
  unsigned now_memory = 0, now_core = 0;
  int read = nvml::kOk;
  const auto right = [&] {
    read = application_clocks(f.application_clock, now_memory, now_core);
    return read == nvml::kOk && now_memory == memory && now_core == core;
  };
  const auto failure = [&](int code) -> ControlResult {
    return {status_of(code), fmt::format("{}: {}", step.kind, library_->error(code))};
  };
  if (right()) return {};
  // Resetting lets the driver choose again, which setting the default values would not. It is therefore tried first;
  // the clocks are set if they are known to have been different.
  const int reset = nvml::call(f.reset_application_clocks, gpu_.handle);
  if (reset == nvml::kOk && right()) return {};
  if (read != nvml::kOk) return failure(read);
  unsigned usual_memory = 0, usual_core = 0;
  const int usual = application_clocks(f.default_application_clock, usual_memory, usual_core);
  const bool others = usual == nvml::kOk && (usual_memory != memory || usual_core != core);
  if (reset != nvml::kOk && !others && !(missing(reset) && missing(usual))) return failure(reset);
  const int set = nvml::call(f.set_application_clocks, gpu_.handle, memory, core);
  if (set != nvml::kOk) return failure(set);
  if (right()) return {};
  if (read != nvml::kOk) return failure(read);
  return {ControlStatus::failed,
          fmt::format("{}: they are {} {} after {} {} was written", step.kind, now_memory, now_core, memory, core)};
}

}  // namespace ergotune
