// State of an NVIDIA GPU: clocks, temperature, limits, throttle reasons, and other processes that use it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {
namespace {

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {{0x1, "idle"},
                               {0x2, "application_clocks"},
                               {0x4, "power_cap"},
                               {0x8, "hardware_slowdown"},
                               {0x10, "sync_boost"},
                               {0x20, "thermal"},
                               {0x40, "hardware_thermal"},
                               {0x80, "power_brake"},
                               {0x100, "display_clocks"}};

class NvmlMonitor : public DeviceMonitor {
 public:
  NvmlMonitor(std::shared_ptr<const nvml::Library> library, const nvml::NvmlDevice& gpu)
      : library_(std::move(library)), gpu_(gpu) {}

  DeviceState read() override {
    DeviceState state;
    const auto& nvml = library_->functions();
    auto value = [&](auto function, auto... arguments) -> std::optional<double> {
      unsigned number = 0;
      if (!function || function(gpu_.handle, arguments..., &number) != nvml::kOk) return std::nullopt;
      return static_cast<double>(number);
    };
    state.core_clock_mhz = value(nvml.clock_info, static_cast<int>(nvml::kSmClock));
    state.memory_clock_mhz = value(nvml.clock_info, static_cast<int>(nvml::kMemoryClock));
    state.temperature_c = temperature();
    if (const auto milliwatts = value(nvml.enforced_power_limit)) state.power_limit_w = *milliwatts * 1e-3;
    // nvmlDeviceGetPowerUsage may be an average over a second, which lags behind the other values.
    if (const auto milliwatts = value(nvml.power_usage); milliwatts && *milliwatts > 0)
      state.power_w = *milliwatts * 1e-3;
    unsigned long long bits = 0;
    if (nvml.event_reasons && nvml.event_reasons(gpu_.handle, &bits) == nvml::kOk)
      for (const auto& reason : kReasons)
        if (bits & reason.bit) state.clock_reasons.emplace_back(reason.name);
    state.foreign_processes = foreign();
    return state;
  }

 private:
  /// The original call is deprecated in CUDA 13; the versioned one does not exist in earlier versions.
  std::optional<double> temperature() const {
    const auto& nvml = library_->functions();
    nvml::Temperature versioned{nvml::kTemperatureVersion1};
    if (nvml.temperature_v && nvml.temperature_v(gpu_.handle, &versioned) == nvml::kOk) return versioned.temperature;
    unsigned celsius = 0;
    if (nvml.temperature && nvml.temperature(gpu_.handle, 0, &celsius) == nvml::kOk) return celsius;
    return std::nullopt;
  }

  /// Returns compute processes of other sessions. In a container the driver reports process ids of the host: a single
  /// unknown one may be this process, so the result is then nullopt.
  std::optional<std::vector<int>> foreign() const {
    const auto& nvml = library_->functions();
    if (!nvml.compute_processes) return std::nullopt;
    std::vector<nvml::ProcessInfo> processes(16);
    auto count = static_cast<unsigned>(processes.size());
    int code = nvml.compute_processes(gpu_.handle, &count, processes.data());
    if (code == nvml::kInsufficientSize) {
      processes.resize(count + 8);
      count = static_cast<unsigned>(processes.size());
      code = nvml.compute_processes(gpu_.handle, &count, processes.data());
    }
    if (code != nvml::kOk) return std::nullopt;
    std::vector<int> others;
    std::size_t invisible = 0;
    for (unsigned i = 0; i < count; ++i) {
      const auto pid = static_cast<pid_t>(processes[i].pid);
      if (pid == getpid() || pid == getppid() || getpgid(pid) == getpgid(0)) continue;
      if (!std::filesystem::exists("/proc/" + std::to_string(pid))) {
        ++invisible;
        others.push_back(pid);
        continue;
      }
      // Workers run in separate process groups but in this session; a session that began outside of the container reads
      // 0 for both.
      if (getsid(pid) == getsid(0) && is_relative(pid)) continue;
      others.push_back(pid);
    }
    if (invisible == 1 && others.size() == 1 && count == 1) return std::nullopt;
    return others;
  }

  static pid_t parent_of(pid_t pid) {
    // /proc/<pid>/stat: "pid (name) state ppid ..."; the name may contain any character, so parsing starts after the
    // last ')'.
    const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
    pid_t parent{};
    std::sscanf(stat.substr(stat.rfind(')') + 1).c_str(), " %*c %d", &parent);
    return parent;
  }
  /// True for descendants of this process (which may be the first process of a container) or of its parent (unless that
  /// is the first process, the parent of all orphans), and for ancestors.
  static bool is_relative(pid_t pid) {
    auto above = [](pid_t low, pid_t high) {
      for (int depth = 0; low > 0 && depth < 64; ++depth, low = parent_of(low))
        if (low == high) return true;
      return false;
    };
    return above(pid, getpid()) || (getppid() > 1 && above(pid, getppid())) || above(getpid(), pid);
  }

  std::shared_ptr<const nvml::Library> library_;
  nvml::NvmlDevice gpu_;
};

}  // namespace

std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& name) {
  auto library = nvml::Library::open();
  const nvml::NvmlDevice* gpu = library ? library->find(name) : nullptr;
  return gpu ? std::make_unique<NvmlMonitor>(library, *gpu) : nullptr;
}

std::unique_ptr<DeviceMonitor> make_nvml_monitor(const std::string& uuid, const std::string& pci_address) {
  auto library = nvml::Library::open();
  if (!library) return nullptr;
  const nvml::NvmlDevice* gpu = library->match(uuid, pci_address);
  if (!gpu) return nullptr;
  return std::make_unique<NvmlMonitor>(library, *gpu);
}

}  // namespace ergotune
