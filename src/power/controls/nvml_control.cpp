// NVIDIA GPUs through NVML: locked clocks (application clocks if the GPU or driver lacks locked ones) and power limit.
// Without persistence mode the driver forgets settings when its last client ends, so that persistence mode is enabled
// before the first change and restored with the rest.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"
#include "power/nvml_library.hpp"

namespace ergotune {
namespace {

constexpr unsigned long long kReasonApplicationClocks = 0x2;

unsigned to_mhz(double value) { return static_cast<unsigned>(std::lround(value)); }

// True if CAP_SYS_ADMIN (bit 21), which the driver requires to set clocks, is in the effective set.
bool has_cap_sys_admin() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> 21) & 1;
  return ::geteuid() == 0;
}

constexpr const char* kLockedCore = "nvml-locked-core-clocks";
constexpr const char* kLockedMemory = "nvml-locked-memory-clocks";
constexpr const char* kTaken = "taken";  // value of a locked-clocks step after the GPU has accepted a lock
constexpr const char* kApplicationClocks = "nvml-application-clocks";
constexpr const char* kPowerLimit = "nvml-power-limit";
constexpr const char* kPersistence = "nvml-persistence-mode";

ControlResult bad_value(const RestoreStep& step) {
  return {ControlStatus::invalid_value, fmt::format("{}: \"{}\" is not a value", step.kind, step.value)};
}

class NvmlControl final : public Control {
 public:
  NvmlControl(ControlEnvironment environment, std::shared_ptr<const nvml::Library> library,
              const nvml::NvmlDevice& gpu);

  std::string id() const override;
  std::string reopen_id() const override { return "nvml:" + gpu_.uuid; }
  std::string device_key() const override { return gpu_.uuid; }
  ControlEnvironment environment() const override { return environment_; }
  ControlRange range(ControlQuantity quantity) override;
  std::vector<double> core_clocks_at(double memory_clock_mhz) override;
  bool permitted() override;
  std::string external_lock_sign() override;
  std::string foreign_under_load(const std::vector<std::string>& reasons, std::optional<double> ran_mhz) const override;
  /// True, because an idle GPU reports "idle" instead of the event reason of a lock.
  bool may_overlook_lock() const override;
  ControlResult set(ControlQuantity quantity, double value) override;
  ControlResult check(ControlQuantity quantity, double value) override;
  std::string lost() const override;
  std::vector<RestoreStep> snapshot() override;
  void confirm(RestoreStep& step) const override;
  ControlResult restore(const RestoreStep& step) override;

  /// Converts an NVML return code to a status.
  static ControlStatus status_of(int code);
  /// True if the driver or the GPU does not support the call.
  static bool missing(int code) { return status_of(code) == ControlStatus::not_supported; }

 private:
  template <class Call>
  std::vector<double> list(Call call);
  ControlRange clock_range(ControlQuantity quantity);
  ControlRange limit_range() const;
  int application_clocks(const EntryPoint<int(nvml::Handle, int, unsigned*)>& get, unsigned& memory,
                         unsigned& core) const;
  /// Returns whether application clocks are set (differ from their defaults), and which.
  bool application_clocks_set(unsigned& memory, unsigned& core) const;
  void enable_persistence();
  unsigned paired_core(unsigned memory, unsigned core_now);
  ControlResult set_clock(ControlQuantity quantity, double value);
  ControlResult outcome(ControlQuantity quantity, double value, int code) const;
  template <class T>
  ControlResult put_back(const RestoreStep& step, T wanted, const EntryPoint<int(nvml::Handle, T*)>& get,
                         const EntryPoint<int(nvml::Handle, T)>& set) const;
  ControlResult restore_application_clocks(const RestoreStep& step);

  ControlEnvironment environment_;
  std::shared_ptr<const nvml::Library> library_;
  nvml::NvmlDevice gpu_;
  std::vector<double> memory_clocks_;
  std::map<unsigned, std::vector<double>> core_clocks_;
  int list_failure_ = nvml::kOk;  // of the last list requested
  bool application_clocks_saved_ = false, power_limit_saved_ = false, persistence_saved_ = false;
  bool persistence_on_ = false;
  std::set<ControlQuantity> lock_taken_;
};

ControlStatus NvmlControl::status_of(int code) {
  switch (code) {
    case nvml::kOk:
      return ControlStatus::ok;
    case nvml::kInvalidArgument:
    case nvml::kFrequencyNotSupported:
      return ControlStatus::invalid_value;
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
    case nvml::kDeprecated:
      return ControlStatus::not_supported;
    case nvml::kNoPermission:
      return ControlStatus::no_permission;
    case nvml::kTimeout:
    case nvml::kInUse:
      return ControlStatus::timeout;
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kUninitialised:
    case nvml::kDriverNotLoaded:
    case nvml::kNotFound:
      return ControlStatus::device_lost;
    default:
      return ControlStatus::failed;
  }
}

// Returns the numbers of a list call in ascending order; empty on failure.
template <class Call>
std::vector<double> NvmlControl::list(Call call) {
  unsigned count = 512;
  std::vector<unsigned> mhz(count);
  int code = call(&count, mhz.data());
  if (code == nvml::kInsufficientSize) {
    mhz.resize(count);
    code = call(&count, mhz.data());
  }
  list_failure_ = code;
  if (code != nvml::kOk) return {};
  mhz.resize(std::min<std::size_t>(count, mhz.size()));
  std::set<double> values(mhz.begin(), mhz.end());
  return {values.begin(), values.end()};
}

NvmlControl::NvmlControl(ControlEnvironment environment, std::shared_ptr<const nvml::Library> library,
                         const nvml::NvmlDevice& gpu)
    : environment_(std::move(environment)), library_(std::move(library)), gpu_(gpu) {
  memory_clocks_ = list([&](unsigned* count, unsigned* mhz) {
    return nvml::call(library_->functions().supported_memory_clocks, gpu_.handle, count, mhz);
  });
}

std::string NvmlControl::id() const { return fmt::format("nvml:{}", gpu_.index); }

ControlRange NvmlControl::limit_range() const {
  ControlRange range;
  const auto& f = library_->functions();
  unsigned low = 0, high = 0, now = 0, usual = 0;
  int code = f.set_power_limit ? nvml::call(f.power_limit_range, gpu_.handle, &low, &high)
                               : static_cast<int>(nvml::kFunctionNotFound);
  if (code == nvml::kOk) code = nvml::call(f.power_limit, gpu_.handle, &now);
  if (code != nvml::kOk) {
    range.why_not = library_->error(code);
    return range;
  }
  range.supported = high > low;
  if (!range.supported) range.why_not = fmt::format("the GPU allows {:g} W only", high / 1e3);
  range.low = low / 1e3;
  range.high = high / 1e3;
  range.current = now / 1e3;
  range.default_value = range.high;
  if (f.default_power_limit && f.default_power_limit(gpu_.handle, &usual) == nvml::kOk)
    range.default_value = usual / 1e3;
  return range;
}

ControlRange NvmlControl::clock_range(ControlQuantity quantity) {
  ControlRange range;
  const auto& f = library_->functions();
  const bool core = quantity == ControlQuantity::core_clock_mhz;
  if (core) {
    std::set<double> all;
    for (const double memory : memory_clocks_)
      for (const double mhz : core_clocks_at(memory)) all.insert(mhz);
    range.values.assign(all.begin(), all.end());
  } else {
    range.values = memory_clocks_;
  }
  const bool setter = (core ? f.set_gpu_locked_clocks : f.set_memory_locked_clocks) || f.set_application_clocks;
  range.supported = !range.values.empty() && setter;
  if (!range.supported) {
    range.why_not = range.values.empty() ? "the supported clocks cannot be read: " + library_->error(list_failure_)
                                         : library_->error(nvml::kFunctionNotFound);
    return range;
  }
  range.low = range.values.front();
  range.high = range.values.back();
  range.default_value = range.high;
  // Locks cannot be read; only changed application clocks are visible.
  unsigned memory = 0, graphics = 0;
  if (application_clocks_set(memory, graphics)) range.current = core ? graphics : memory;
  return range;
}

ControlRange NvmlControl::range(ControlQuantity quantity) {
  return quantity == ControlQuantity::power_limit_w ? limit_range() : clock_range(quantity);
}

std::vector<double> NvmlControl::core_clocks_at(double memory_clock_mhz) {
  const auto& f = library_->functions();
  if (!f.supported_graphics_clocks) return {};
  const unsigned memory = to_mhz(memory_clock_mhz);
  if (const auto known = core_clocks_.find(memory); known != core_clocks_.end()) return known->second;
  auto clocks = list(
      [&](unsigned* count, unsigned* mhz) { return f.supported_graphics_clocks(gpu_.handle, memory, count, mhz); });
  if (!clocks.empty()) core_clocks_[memory] = clocks;
  return clocks;
}

bool NvmlControl::permitted() { return has_cap_sys_admin(); }

int NvmlControl::application_clocks(const EntryPoint<int(nvml::Handle, int, unsigned*)>& get, unsigned& memory,
                                    unsigned& core) const {
  const int code = nvml::call(get, gpu_.handle, nvml::kMemoryClock, &memory);
  return code != nvml::kOk ? code : get(gpu_.handle, nvml::kGraphicsClock, &core);
}

bool NvmlControl::application_clocks_set(unsigned& memory, unsigned& core) const {
  const auto& f = library_->functions();
  unsigned usual_memory = 0, usual_core = 0;
  return application_clocks(f.application_clock, memory, core) == nvml::kOk &&
         application_clocks(f.default_application_clock, usual_memory, usual_core) == nvml::kOk &&
         (memory != usual_memory || core != usual_core);
}

bool NvmlControl::may_overlook_lock() const { return static_cast<bool>(library_->functions().set_gpu_locked_clocks); }

std::string NvmlControl::foreign_under_load(const std::vector<std::string>& reasons,
                                            std::optional<double> ran_mhz) const {
  // A lock is recognised by the event reason "application clocks setting" while the application clocks, which can be
  // read, have their default values or do not exist.
  if (std::ranges::find(reasons, "application_clocks") == reasons.end()) return {};
  unsigned memory = 0, core = 0;
  if (application_clocks_set(memory, core)) return {};
  if (ran_mhz)
    return fmt::format(
        "another process seems to have locked its clocks (it runs at {:.0f} MHz because of a clock setting, and the "
        "driver does not report which)",
        *ran_mhz);
  return "another process seems to have locked its clocks (it is held by a clock setting, and the driver does not "
         "report which)";
}

std::string NvmlControl::external_lock_sign() {
  const auto& f = library_->functions();
  unsigned long long bits = 0;
  if (!f.event_reasons || f.event_reasons(gpu_.handle, &bits) != nvml::kOk) return {};
  std::vector<std::string> reasons;
  if (bits & kReasonApplicationClocks) reasons.emplace_back("application_clocks");
  unsigned mhz = 0;
  const bool read = nvml::call(f.clock_info, gpu_.handle, nvml::kGraphicsClock, &mhz) == nvml::kOk;
  return foreign_under_load(reasons, read ? std::optional<double>(mhz) : std::nullopt);
}

ControlResult NvmlControl::outcome(ControlQuantity quantity, double value, int code) const {
  if (code == nvml::kOk) return {};
  std::string message = library_->error(code);
  if (code == nvml::kNoPermission) message += "; setting it needs root or the helper ergotuned";
  return {status_of(code), error_description(quantity, value, message)};
}

ControlResult NvmlControl::set_clock(ControlQuantity quantity, double value) {
  const auto& f = library_->functions();
  const bool core = quantity == ControlQuantity::core_clock_mhz;
  const unsigned mhz = to_mhz(value);
  const auto lock = core ? f.set_gpu_locked_clocks : f.set_memory_locked_clocks;
  const auto unlock = core ? f.reset_gpu_locked_clocks : f.reset_memory_locked_clocks;
  int code = nvml::kFunctionNotFound;
  if (lock && unlock) {
    code = lock(gpu_.handle, mhz, mhz);
    if (code == nvml::kOk) lock_taken_.insert(quantity);
  }
  if (!missing(code) || !application_clocks_saved_ || !f.set_application_clocks) return outcome(quantity, value, code);
  // GPUs before Volta (memory clock: before Ampere) have application clocks, which are set as a pair.
  unsigned memory_now = 0, core_now = 0;
  code = application_clocks(f.application_clock, memory_now, core_now);
  if (code != nvml::kOk) return outcome(quantity, value, code);
  return outcome(quantity, value,
                 core ? f.set_application_clocks(gpu_.handle, memory_now, mhz)
                      : f.set_application_clocks(gpu_.handle, mhz, paired_core(mhz, core_now)));
}

ControlResult NvmlControl::set(ControlQuantity quantity, double value) {
  if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) {
    const bool unread =
        checked.status == ControlStatus::not_supported && list_failure_ != nvml::kOk && !missing(list_failure_);
    if (unread) checked.status = status_of(list_failure_);
    return checked;
  }
  enable_persistence();
  if (quantity != ControlQuantity::power_limit_w) return set_clock(quantity, value);
  if (!power_limit_saved_)
    return {ControlStatus::not_supported, error_description(quantity, value, "the limit of now could not be read")};
  return outcome(quantity, value,
                 library_->functions().set_power_limit(gpu_.handle, static_cast<unsigned>(std::lround(value * 1e3))));
}

ControlResult NvmlControl::check(ControlQuantity quantity, double value) {
  const auto& f = library_->functions();
  if (quantity == ControlQuantity::power_limit_w) {
    unsigned now = 0;
    if (nvml::call(f.power_limit, gpu_.handle, &now) != nvml::kOk) return {};
    if (std::abs(now * 1e-3 - value) > 0.5) return changed_meanwhile(quantity, value, now * 1e-3);
    // A BMC or module may enforce a lower limit.
    unsigned enforced = 0;
    if (nvml::call(f.enforced_power_limit, gpu_.handle, &enforced) != nvml::kOk || enforced == 0) return {};
    if (enforced * 1e-3 >= value - 0.5) return {};
    return {ControlStatus::failed,
            error_description(quantity, value,
                              fmt::format("a lower limit of {:g} W is enforced, which was set outside of the driver (a "
                                          "BMC or a limit of the module)",
                                          enforced * 1e-3))};
  }
  if (lock_taken_.contains(quantity) || !application_clocks_saved_) return {};
  unsigned memory = 0, core = 0;
  if (application_clocks(f.application_clock, memory, core) != nvml::kOk) return {};
  const unsigned now = quantity == ControlQuantity::core_clock_mhz ? core : memory;
  return now == to_mhz(value) ? ControlResult{} : changed_meanwhile(quantity, value, now);
}

std::string NvmlControl::lost() const {
  unsigned mhz = 0;
  const int code = nvml::call(library_->functions().clock_info, gpu_.handle, nvml::kGraphicsClock, &mhz);
  if (!nvml::lost(code)) return {};
  return fmt::format("the device is lost ({}); a reset of the GPU or a restart of the machine brings it back",
                     library_->error(code));
}

// Enables persistence mode. A failure is ignored: settings may then be forgotten early.
void NvmlControl::enable_persistence() {
  const auto& f = library_->functions();
  if (persistence_on_ || !persistence_saved_ || !f.set_persistence_mode) return;
  int now = 0;
  if (f.persistence_mode(gpu_.handle, &now) == nvml::kOk && now == 0) f.set_persistence_mode(gpu_.handle, 1);
  persistence_on_ = true;
}

// Returns the core clock to set together with a memory clock: the present one, or the nearest supported one.
unsigned NvmlControl::paired_core(unsigned memory, unsigned core_now) {
  ControlRange allowed;
  allowed.values = core_clocks_at(memory);
  return allowed.values.empty() ? core_now : to_mhz(nearest_value(allowed, core_now));
}

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
  if (step.target != gpu_.uuid) return foreign_step(step);
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

}  // namespace

std::unique_ptr<Control> open_nvml_control(const std::string& id, const ControlEnvironment& environment,
                                           std::string& reason) {
  const auto library = nvml::Library::open_file(environment.nvml_library, &reason);
  if (!library) return nullptr;
  const nvml::NvmlDevice* gpu = library->find(id == "nvml" ? "0" : id.substr(id.find(':') + 1));
  if (gpu && !gpu->uuid.empty()) return std::make_unique<NvmlControl>(environment, library, *gpu);
  reason = gpu ? "the GPU does not report its UUID" : "NVML knows no such GPU";
  return nullptr;
}

std::vector<std::string> list_nvml_controls(const ControlEnvironment& environment) {
  std::vector<std::string> ids;
  if (const auto library = nvml::Library::open_file(environment.nvml_library))
    for (const auto& gpu : library->gpus()) ids.push_back(fmt::format("nvml:{}", gpu.index));
  return ids;
}

std::string find_nvml_control(const std::string& uuid, const std::string& pci_address,
                              const ControlEnvironment& environment) {
  const auto library = nvml::Library::open_file(environment.nvml_library);
  const nvml::NvmlDevice* gpu = library ? library->match(uuid, pci_address) : nullptr;
  return gpu ? fmt::format("nvml:{}", gpu->index) : "";
}

}  // namespace ergotune
