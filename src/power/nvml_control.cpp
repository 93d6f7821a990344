// NVIDIA GPUs through NVML: locked clocks (application clocks where the board or driver has no locked ones),
// power limit. The driver forgets settings when its last client leaves unless persistence mode is on, so it
// is switched on before the first change and put back with the rest.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "ergotune/base/error.hpp"
#include "power/control_backends.hpp"
#include "power/nvml_library.hpp"

namespace ergotune {
namespace {

constexpr const char* kLockedCore = "nvml-locked-core-clocks";
constexpr const char* kLockedMemory = "nvml-locked-memory-clocks";
constexpr const char* kTaken = "taken";  // value of a locked-clocks step once the board took the lock
constexpr const char* kApplicationClocks = "nvml-application-clocks";
constexpr const char* kPowerLimit = "nvml-power-limit";
constexpr const char* kPersistence = "nvml-persistence-mode";
constexpr unsigned long long kReasonApplicationClocks = 0x2;

ControlStatus status_of(int code) {
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

bool missing(int code) { return status_of(code) == ControlStatus::not_supported; }

unsigned to_mhz(double value) { return static_cast<unsigned>(std::lround(value)); }

// CAP_SYS_ADMIN (bit 21) in the effective set: what the driver asks of who sets clocks.
bool has_cap_sys_admin() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> 21) & 1;
  return ::geteuid() == 0;
}

class NvmlControl final : public Control {
 public:
  NvmlControl(ControlEnvironment environment, std::shared_ptr<const nvml::Library> library,
              const nvml::Board& board)
      : environment_(std::move(environment)), library_(std::move(library)), board_(board) {
    memory_clocks_ = list([&](unsigned* count, unsigned* mhz) {
      return nvml::call(library_->functions().supported_memory_clocks, board_.handle, count, mhz);
    });
  }

  std::string id() const override { return fmt::format("nvml:{}", board_.index); }
  std::string reopen_id() const override { return "nvml:" + board_.uuid; }
  std::string device_key() const override { return board_.uuid; }
  ControlEnvironment environment() const override { return environment_; }

  ControlRange range(ControlQuantity quantity) override {
    ControlRange range;
    const auto& f = library_->functions();
    switch (quantity) {
      case ControlQuantity::core_clock_mhz: {
        std::set<double> all;
        for (const double memory : memory_clocks_)
          for (const double core : core_clocks_at(memory)) all.insert(core);
        range.values.assign(all.begin(), all.end());
        range.supported = !range.values.empty() && (f.set_gpu_locked_clocks || f.set_application_clocks);
        break;
      }
      case ControlQuantity::memory_clock_mhz:
        range.values = memory_clocks_;
        range.supported = !range.values.empty() && (f.set_memory_locked_clocks || f.set_application_clocks);
        break;
      case ControlQuantity::power_limit_w: {
        unsigned low = 0, high = 0, now = 0, usual = 0;
        if (!f.set_power_limit || !f.power_limit_range || !f.power_limit ||
            f.power_limit_range(board_.handle, &low, &high) != nvml::kOk ||
            f.power_limit(board_.handle, &now) != nvml::kOk)
          return range;
        range.supported = high > low;
        range.low = low / 1e3;
        range.high = high / 1e3;
        range.current = now / 1e3;
        range.default_value = range.high;
        if (f.default_power_limit && f.default_power_limit(board_.handle, &usual) == nvml::kOk)
          range.default_value = usual / 1e3;
        return range;
      }
    }
    if (range.supported) {
      range.low = range.values.front();
      range.high = range.values.back();
      range.default_value = range.high;
      unsigned mhz = 0;
      const int type =
          quantity == ControlQuantity::core_clock_mhz ? nvml::kGraphicsClock : nvml::kMemoryClock;
      if (f.application_clock && f.application_clock(board_.handle, type, &mhz) == nvml::kOk)
        range.current = mhz;
    }
    return range;
  }

  std::vector<double> core_clocks_at(double memory_clock_mhz) override {
    const auto& f = library_->functions();
    if (!f.supported_graphics_clocks) return {};
    const unsigned memory = to_mhz(memory_clock_mhz);
    if (const auto known = core_clocks_.find(memory); known != core_clocks_.end()) return known->second;
    auto clocks = list([&](unsigned* count, unsigned* mhz) {
      return f.supported_graphics_clocks(board_.handle, memory, count, mhz);
    });
    if (!clocks.empty()) core_clocks_[memory] = clocks;
    return clocks;
  }

  bool permitted() override { return has_cap_sys_admin(); }

  std::string foreign_setting() override {
    // Locked clocks have no getter. The sign is the event reason "application clocks setting" while the
    // application clocks, which can be read, are at their default or do not exist.
    const auto& f = library_->functions();
    unsigned long long reasons = 0;
    if (!f.event_reasons || f.event_reasons(board_.handle, &reasons) != nvml::kOk) return {};
    if (!(reasons & kReasonApplicationClocks)) return {};
    unsigned memory = 0, core = 0, usual_memory = 0, usual_core = 0;
    if (application_clocks(f.application_clock, memory, core) == nvml::kOk &&
        application_clocks(f.default_application_clock, usual_memory, usual_core) == nvml::kOk &&
        (memory != usual_memory || core != usual_core))
      return {};
    unsigned now = 0;
    if (f.clock_info && f.clock_info(board_.handle, nvml::kGraphicsClock, &now) == nvml::kOk)
      return fmt::format(
          "somebody seems to have locked its clocks (it runs at {} MHz because of a clock setting, and "
          "the driver does not tell which)",
          now);
    return "somebody seems to have locked its clocks (it is held by a clock setting, and the driver does not "
           "tell which)";
  }

  std::vector<RestoreStep> snapshot() override {
    const auto& f = library_->functions();
    std::vector<RestoreStep> steps;
    const auto required = [&](int code, const char* what) {
      if (code == nvml::kOk) return true;
      if (missing(code)) return false;
      throw UserError(
          fmt::format("{}: its {} cannot be read ({}), so it could not be put back: nothing is changed", id(),
                      what, library_->error(code)));
    };
    if (f.reset_gpu_locked_clocks)
      steps.push_back({kLockedCore, board_.uuid, "", ControlQuantity::core_clock_mhz});
    if (f.reset_memory_locked_clocks)
      steps.push_back({kLockedMemory, board_.uuid, "", ControlQuantity::memory_clock_mhz});
    unsigned memory = 0, core = 0;
    const int clocks = application_clocks(f.application_clock, memory, core);
    application_clocks_saved_ = required(clocks, "application clocks");
    if (application_clocks_saved_)
      for (const auto quantity : {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz})
        steps.push_back({kApplicationClocks, board_.uuid, fmt::format("{} {}", memory, core), quantity});
    unsigned limit = 0;
    power_limit_saved_ = required(nvml::call(f.power_limit, board_.handle, &limit), "power limit");
    if (power_limit_saved_) steps.push_back({kPowerLimit, board_.uuid, std::to_string(limit)});
    int persistence = 0;
    persistence_saved_ =
        required(nvml::call(f.persistence_mode, board_.handle, &persistence), "persistence mode");
    // Last: with persistence off the driver may forget the rest at any time.
    if (persistence_saved_) steps.push_back({kPersistence, board_.uuid, std::to_string(persistence)});
    return steps;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    if (auto checked = check_value(quantity, range(quantity), value); !checked.ok()) {
      if (checked.status == ControlStatus::not_supported && list_failure_ != nvml::kOk &&
          !missing(list_failure_))
        return {status_of(list_failure_),
                error_words(quantity, value,
                            "the supported clocks cannot be read: " + library_->error(list_failure_))};
      return checked;
    }
    keep_settings();
    const auto& f = library_->functions();
    const auto result = [&](int code) -> ControlResult {
      if (code == nvml::kOk) return {};
      std::string words = library_->error(code);
      if (code == nvml::kNoPermission) words += "; setting it needs root or the helper ergotuned";
      return {status_of(code), error_words(quantity, value, words)};
    };
    if (quantity == ControlQuantity::power_limit_w) {
      if (!power_limit_saved_)
        return {ControlStatus::not_supported,
                error_words(quantity, value, "the limit of now could not be read")};
      return result(f.set_power_limit(board_.handle, static_cast<unsigned>(std::lround(value * 1e3))));
    }
    const bool core = quantity == ControlQuantity::core_clock_mhz;
    const unsigned mhz = to_mhz(value);
    const auto lock = core ? f.set_gpu_locked_clocks : f.set_memory_locked_clocks;
    const auto unlock = core ? f.reset_gpu_locked_clocks : f.reset_memory_locked_clocks;
    int code = nvml::kFunctionNotFound;
    if (lock && unlock) {
      code = lock(board_.handle, mhz, mhz);
      if (code == nvml::kOk) lock_taken_.insert(quantity);
    }
    if (!missing(code) || !application_clocks_saved_ || !f.set_application_clocks) return result(code);
    // Boards before Volta (memory: Ampere) have application clocks, always as a pair.
    unsigned memory_now = 0, core_now = 0;
    code = application_clocks(f.application_clock, memory_now, core_now);
    if (code != nvml::kOk) return result(code);
    return result(core ? f.set_application_clocks(board_.handle, memory_now, mhz)
                       : f.set_application_clocks(board_.handle, mhz, paired_core(mhz, core_now)));
  }

  void confirm(RestoreStep& step) const override {
    if (step.quantity && lock_taken_.contains(*step.quantity) &&
        (step.kind == kLockedCore || step.kind == kLockedMemory))
      step.value = kTaken;
  }

  ControlResult restore(const RestoreStep& step) override {
    if (step.target != board_.uuid)
      return {ControlStatus::invalid_value,
              fmt::format("{} {} is no step of this device", step.kind, step.target)};
    const auto& f = library_->functions();
    const auto result = [&](int code) -> ControlResult {
      if (code == nvml::kOk) return {};
      return {status_of(code), fmt::format("{}: {}", step.kind, library_->error(code))};
    };
    if (step.kind == kLockedCore || step.kind == kLockedMemory) {
      const int code = nvml::call(
          step.kind == kLockedCore ? f.reset_gpu_locked_clocks : f.reset_memory_locked_clocks, board_.handle);
      // A board that knows no such lock has none in force; but one that took it must also let go of it.
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

 private:
  // Numbers of a list call, ascending; empty when it fails.
  template <class Call>
  std::vector<double> list(Call call) {
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

  int application_clocks(const Entry<int(nvml::Handle, int, unsigned*)>& get, unsigned& memory,
                         unsigned& core) const {
    const int code = nvml::call(get, board_.handle, nvml::kMemoryClock, &memory);
    return code != nvml::kOk ? code : get(board_.handle, nvml::kGraphicsClock, &core);
  }

  // A failure here only means that settings may be forgotten early: that is no reason to refuse them.
  void keep_settings() {
    const auto& f = library_->functions();
    if (persistence_on_ || !persistence_saved_ || !f.set_persistence_mode) return;
    int now = 0;
    if (f.persistence_mode(board_.handle, &now) == nvml::kOk && now == 0)
      f.set_persistence_mode(board_.handle, 1);
    persistence_on_ = true;
  }

  // The core clock to go with a memory clock: the one set now, or the nearest that goes with it.
  unsigned paired_core(unsigned memory, unsigned core_now) {
    ControlRange allowed;
    allowed.values = core_clocks_at(memory);
    return allowed.values.empty() ? core_now : to_mhz(nearest_value(allowed, core_now));
  }

  static ControlResult bad_value(const RestoreStep& step) {
    return {ControlStatus::invalid_value, fmt::format("{}: \"{}\" is no value", step.kind, step.value)};
  }

  // Reads, writes where it differs, reads again.
  template <class T>
  ControlResult put_back(const RestoreStep& step, T wanted, const Entry<int(nvml::Handle, T*)>& get,
                         const Entry<int(nvml::Handle, T)>& set) const {
    T now{};
    if (nvml::call(get, board_.handle, &now) == nvml::kOk && now == wanted) return {};
    if (const int code = nvml::call(set, board_.handle, wanted); code != nvml::kOk)
      return {status_of(code), fmt::format("{}: {}", step.kind, library_->error(code))};
    const int code = nvml::call(get, board_.handle, &now);
    if (code != nvml::kOk)
      return {status_of(code),
              fmt::format("{}: written, but it cannot be verified: {}", step.kind, library_->error(code))};
    if (now == wanted) return {};
    return {ControlStatus::failed, fmt::format("{}: it is {} after {} was written", step.kind, now, wanted)};
  }

  ControlResult restore_application_clocks(const RestoreStep& step) {
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
    // A reset gives the driver the choice back, which setting the default values would not: it comes first,
    // and setting follows where the clocks are known to have been others.
    const int reset = nvml::call(f.reset_application_clocks, board_.handle);
    if (reset == nvml::kOk && right()) return {};
    if (read != nvml::kOk) return failure(read);
    unsigned usual_memory = 0, usual_core = 0;
    const int usual = application_clocks(f.default_application_clock, usual_memory, usual_core);
    const bool others = usual == nvml::kOk && (usual_memory != memory || usual_core != core);
    if (reset != nvml::kOk && !others && !(missing(reset) && missing(usual))) return failure(reset);
    const int set = nvml::call(f.set_application_clocks, board_.handle, memory, core);
    if (set != nvml::kOk) return failure(set);
    if (right()) return {};
    if (read != nvml::kOk) return failure(read);
    return {ControlStatus::failed, fmt::format("{}: they are {} {} after {} {} was written", step.kind,
                                               now_memory, now_core, memory, core)};
  }

  ControlEnvironment environment_;
  std::shared_ptr<const nvml::Library> library_;
  nvml::Board board_;
  std::vector<double> memory_clocks_;
  std::map<unsigned, std::vector<double>> core_clocks_;
  int list_failure_ = nvml::kOk;  // of the last list that was asked for
  bool application_clocks_saved_ = false, power_limit_saved_ = false, persistence_saved_ = false;
  bool persistence_on_ = false;
  std::set<ControlQuantity> lock_taken_;
};

}  // namespace

std::unique_ptr<Control> open_nvml_control(const std::string& id, const ControlEnvironment& environment,
                                           std::string& reason) {
  const auto library = nvml::Library::open_file(environment.nvml_library, &reason);
  if (!library) return nullptr;
  const nvml::Board* board = library->find(id == "nvml" ? "0" : id.substr(id.find(':') + 1));
  if (board && !board->uuid.empty()) return std::make_unique<NvmlControl>(environment, library, *board);
  reason = board ? "the board does not tell its UUID" : "NVML knows no such board";
  return nullptr;
}

std::vector<std::string> list_nvml_controls(const ControlEnvironment& environment) {
  std::vector<std::string> ids;
  if (const auto library = nvml::Library::open_file(environment.nvml_library))
    for (const auto& board : library->boards()) ids.push_back(fmt::format("nvml:{}", board.index));
  return ids;
}

std::string find_nvml_control(const std::string& uuid, const std::string& pci_address,
                              const ControlEnvironment& environment) {
  const auto library = nvml::Library::open_file(environment.nvml_library);
  const nvml::Board* board = library ? library->match(uuid, pci_address) : nullptr;
  return board ? fmt::format("nvml:{}", board->index) : "";
}

}  // namespace ergotune
