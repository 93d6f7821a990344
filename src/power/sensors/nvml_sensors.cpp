// The power and energy sensors of an NVIDIA GPU, through NVML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {
namespace {

/// Continues a 32-bit energy counter, which wraps to 0, across wraps. A decrease is a wrap if the implied energy is
/// possible in the time since the last reading; any other decrease (restart of the driver) is passed on.
class CounterWrap {
 public:
  /// `unit`: J of one count.
  explicit CounterWrap(double unit) : range_(unit * 4294967296.0) {}

  double continued(double joules, double time) {
    const double step = joules + range_ - last_;
    if (joules < last_ && step <= kMostPower * (time - time_ + kLongestTick)) wrapped_ += range_;
    last_ = joules;
    time_ = time;
    return joules + wrapped_;
  }

 private:
  static constexpr double kMostPower = 1e4;  ///< W of one device
  static constexpr double kLongestTick = 1;  ///< s between two updates of a counter
  double range_, last_ = 0, time_ = 0, wrapped_ = 0;
};

using nvml::Library;
using nvml::NvmlDevice;

enum class Role { energy, samples, instant, average };
constexpr Role kRoles[] = {Role::energy, Role::samples, Role::instant, Role::average};  // best first

std::string name_of(Role role) {
  constexpr std::array kNames = {"energy", "samples", "instant", "average"};
  return kNames.at(static_cast<std::size_t>(role));
}

/// Properties known for a GPU's generation before calibration. Windows differ between GPUs, so these are only initial
/// values.
SensorInfo known_semantics(const Library& library, const NvmlDevice& gpu, Role role) {
  SensorInfo info;
  info.id = fmt::format("nvml:{}/{}", gpu.index, name_of(role));
  info.scope = SensorScope::gpu;
  info.uuid = gpu.uuid;
  info.pci_address = gpu.pci_address;
  info.driver = library.driver_version();
  const bool sleeps = gpu.architecture == nvml::kHopper || gpu.name.find("A100") != std::string::npos;
  // Measured on an H100 (docs/measurements); unknown for other generations before calibration.
  if (gpu.architecture == nvml::kHopper) info.repeatability = 0.009;
  const bool quick = gpu.architecture == nvml::kPascal || gpu.architecture == nvml::kVolta;
  switch (role) {
    case Role::energy:
      info.name = fmt::format("{}, energy counter", gpu.name);
      info.kind = SensorKind::cumulative_energy;
      info.unit_step = 1e-3;
      info.update_period = quick ? 0.02 : 0.1;
      break;
    case Role::samples:
      info.name = fmt::format("{}, power sample buffer", gpu.name);
      info.kind = SensorKind::windowed_power;
      info.unit_step = 1e-3;
      info.update_period = info.window = 0.02;
      break;
    case Role::instant:
      info.name = fmt::format("{}, power", gpu.name);
      info.unit_step = 1e-3;
      if (gpu.architecture != 0 && gpu.architecture <= nvml::kMaxwell) {
        info.kind = SensorKind::exponential_power;
        info.update_period = 0.015;
        info.window = 0.83;  // K20c in Guerreiro et al. (2015); calibration determines it per GPU
      } else {
        info.kind = SensorKind::windowed_power;
        info.update_period = quick ? 0.02 : 0.1;
        info.window = quick ? 0.01 : sleeps ? 0.025 : 0.1;
      }
      break;
    case Role::average:
      info.name = fmt::format("{}, power averaged over 1 s", gpu.name);
      info.kind = SensorKind::windowed_power;
      info.unit_step = 1e-3;
      info.update_period = 0.1;
      info.window = 1.0;
      break;
  }
  // A GPU in operation draws more than the minimum, less than three times its highest limit, and never exactly the same
  // power to the milliwatt.
  unsigned low{}, high{};
  info.min_power = 0.1;
  info.most_power = 5000;
  if (nvml::call(library.functions().power_limit_range, gpu.handle, &low, &high) == nvml::kOk && low > 1000 &&
      high > low && high < 5'000'000) {
    info.min_power = std::max(info.min_power, 1e-5 * low);
    info.most_power = 3e-3 * high;
  }
  info.always_fluctuates = true;
  return info;
}

/// Base of the four sensors: identity and messages of failures.
class NvmlSensor : public DescribedSensor {
 public:
  NvmlSensor(std::shared_ptr<const Library> library, const NvmlDevice& gpu, SensorInfo info)
      : DescribedSensor(std::move(info)), library_(std::move(library)), gpu_(gpu) {}

 protected:
  ReadStatus failure(const char* what, int code) {
    error_ = fmt::format("{}: {}{}", what, library_->error(code), nvml::lost(code) ? nvml::kLostSuffix : "");
    return code == nvml::kNotSupported || code == nvml::kFunctionNotFound || code == nvml::kDeprecated
               ? ReadStatus::not_supported
               : ReadStatus::failed;
  }
  ReadStatus missing(const char* what) {
    error_ = fmt::format("{}: not in this NVML library", what);
    return ReadStatus::not_supported;
  }
  /// Returns false and sets the message if no GPU can draw this power, or if the value has a type that power never has.
  bool plausible(double watts, unsigned type) {
    constexpr unsigned kUnsignedShort = 6;
    if (type >= kUnsignedShort) {
      error_ = fmt::format("the GPU gives its power as a value of type {}, which holds none", type);
      return false;
    }
    // NaN fails both comparisons.
    if (watts >= info_.min_power && watts <= info_.most_power) return true;
    error_ = fmt::format("the GPU reads {:.3g} W, which {}", watts,
                         watts > info_.most_power ? "is far above any limit of its" : "no GPU in operation draws");
    return false;
  }

  /// True if a call took much longer than others, because the thread was preempted: the time of its reading is unknown,
  /// and it is dropped. Calls that are always slow are accepted.
  bool was_preempted(double seconds) {
    quickest_ = std::min(quickest_, seconds);
    return seconds > 2e-3 + 5 * quickest_;
  }

  std::shared_ptr<const Library> library_;
  NvmlDevice gpu_;

 private:
  double quickest_ = INFINITY;  ///< s
};

/// Total energy since the driver was loaded, in mJ; updated in ticks.
class EnergyCounter : public NvmlSensor {
 public:
  using NvmlSensor::NvmlSensor;
  ReadStatus read(std::vector<Reading>& out) override {
    if (!(*library_)->total_energy) return missing((*library_)->total_energy.symbol());
    unsigned long long millijoules{};
    const double before = host_seconds();
    const int code = (*library_)->total_energy(gpu_.handle, &millijoules);
    const double after = host_seconds();
    if (code != nvml::kOk) return failure((*library_)->total_energy.symbol(), code);
    if (was_preempted(after - before)) return ReadStatus::no_new_data;
    // The offset of a power calibration (W) does not apply to a counter; only the gain does.
    const double time = 0.5 * (before + after);
    out.push_back({time, info_.gain * wrap_.continued(kUnit * static_cast<double>(millijoules), time)});
    return ReadStatus::ok;
  }

 private:
  static constexpr double kUnit = 1e-3;
  CounterWrap wrap_{kUnit};
};

/// The driver's buffer of power samples, which have wall-clock time stamps.
class SampleBuffer : public NvmlSensor {
 public:
  using NvmlSensor::NvmlSensor;
  ReadStatus read(std::vector<Reading>& out) override {
    const int code = fetch();
    if (code == nvml::kNotFound) return ReadStatus::no_new_data;
    if (code == nvml::kFunctionNotFound) return missing((*library_)->samples.symbol());
    if (code != nvml::kOk) return failure((*library_)->samples.symbol(), code);
    const double offset = offset_from_host(wall_seconds);  // time stamps of the buffer are wall-clock times
    bool any = false, refused = false;
    for (const auto& sample : buffer_) {
      if (sample.time <= last_) continue;
      last_ = sample.time;
      const double watts = 1e-3 * nvml::number(sample.value, type_);
      if (!plausible(watts, type_)) {  // an empty entry of the buffer, or an invalid value
        refused = true;
        continue;
      }
      out.push_back({1e-6 * static_cast<double>(sample.time) - offset, corrected(watts)});
      any = true;
    }
    return any ? ReadStatus::ok : refused ? ReadStatus::failed : ReadStatus::no_new_data;
  }
  void restart() override {
    if (fetch() != nvml::kOk) return;
    for (const auto& sample : buffer_) last_ = std::max(last_, sample.time);
  }

 private:
  int fetch() {
    if (!(*library_)->samples) return nvml::kFunctionNotFound;
    int type{};
    unsigned count{};
    if (capacity_ == 0) {
      const int code = (*library_)->samples(gpu_.handle, 0, 0, &type, &count, nullptr);
      if (code != nvml::kOk) return code;
      capacity_ = std::max(count, 1u);
    }
    buffer_.assign(capacity_, nvml::Sample{});
    count = capacity_;
    const int code = (*library_)->samples(gpu_.handle, 0, last_, &type, &count, buffer_.data());
    type_ = static_cast<unsigned>(type);
    buffer_.resize(std::min(count, capacity_));
    return code;
  }
  unsigned capacity_ = 0, type_{};
  unsigned long long last_{};
  std::vector<nvml::Sample> buffer_;
};

/// A power field (185 average, 186 instant), or nvmlDeviceGetPowerUsage if the GPU has no such fields.
class PowerValue : public NvmlSensor {
 public:
  PowerValue(std::shared_ptr<const Library> library, const NvmlDevice& gpu, SensorInfo info, std::uint32_t field)
      : NvmlSensor(std::move(library), gpu, std::move(info)), field_(field) {}
  ReadStatus read(std::vector<Reading>& out) override {
    double watts{};
    unsigned type{};
    const double before = host_seconds();
    if (field_ != 0) {
      if (!(*library_)->field_values) return missing((*library_)->field_values.symbol());
      nvml::FieldValue value{};
      value.field = field_;
      if (const int code = (*library_)->field_values(gpu_.handle, 1, &value); code != nvml::kOk)
        return failure((*library_)->field_values.symbol(), code);
      // The call succeeds even if the field does not exist; the field's return code must be checked.
      if (value.result != nvml::kOk) return failure(fmt::format("NVML field {}", field_).c_str(), value.result);
      watts = 1e-3 * nvml::number(value.value, value.type);
      type = value.type;
    } else {
      if (!(*library_)->power_usage) return missing((*library_)->power_usage.symbol());
      unsigned milliwatts{};
      if (const int code = (*library_)->power_usage(gpu_.handle, &milliwatts); code != nvml::kOk)
        return failure((*library_)->power_usage.symbol(), code);
      watts = 1e-3 * milliwatts;
    }
    const double after = host_seconds();
    if (!plausible(watts, type)) return ReadStatus::failed;
    if (was_preempted(after - before)) return ReadStatus::no_new_data;
    out.push_back({0.5 * (before + after), corrected(watts)});
    return ReadStatus::ok;
  }

 private:
  std::uint32_t field_;
};

std::unique_ptr<Sensor> make(const std::shared_ptr<const Library>& library, const NvmlDevice& gpu, Role role) {
  SensorInfo info = known_semantics(*library, gpu, role);
  switch (role) {
    case Role::energy:
      return std::make_unique<EnergyCounter>(library, gpu, std::move(info));
    case Role::samples:
      return std::make_unique<SampleBuffer>(library, gpu, std::move(info));
    case Role::instant: {
      // Before Ampere, nvmlDeviceGetPowerUsage is not averaged over a second, and the field does not exist.
      const bool has_field = gpu.architecture == 0 || gpu.architecture >= nvml::kAmpere;
      return std::make_unique<PowerValue>(library, gpu, std::move(info), has_field ? nvml::kFieldPowerInstant : 0);
    }
    case Role::average: {
      auto field = std::make_unique<PowerValue>(library, gpu, info, nvml::kFieldPowerAverage);
      std::vector<Reading> probe;
      if (field->read(probe) == ReadStatus::ok) return field;
      return std::make_unique<PowerValue>(library, gpu, std::move(info), 0);
    }
  }
  return nullptr;
}

/// True if the sensor delivers a value now; otherwise adds the reason to `notes`.
bool answers(Sensor& sensor, std::vector<std::string>& notes) {
  std::vector<Reading> probe;
  const ReadStatus status = sensor.read(probe);
  if (status == ReadStatus::ok || status == ReadStatus::no_new_data) return true;
  notes.push_back(fmt::format("{}: {}", sensor.info().id, sensor.last_error()));
  return false;
}

std::vector<std::unique_ptr<Sensor>> sensors_of(const std::shared_ptr<const Library>& library, const NvmlDevice& gpu,
                                                std::vector<std::string>& notes) {
  std::vector<std::unique_ptr<Sensor>> sensors;
  for (const Role role : kRoles) {
    if (role == Role::average && gpu.architecture != 0 && gpu.architecture < nvml::kAmpere) continue;
    auto sensor = make(library, gpu, role);
    if (answers(*sensor, notes)) sensors.push_back(std::move(sensor));
  }
  return sensors;
}

class NvmlFamily : public SensorFamily {
 public:
  std::string name() const override { return "nvml"; }

  std::vector<SensorInfo> list(std::vector<std::string>& notes) override {
    std::vector<SensorInfo> infos;
    std::string reason;
    const auto library = Library::open(&reason);
    if (!library) {
      notes.push_back("NVML (NVIDIA GPUs): " + reason);
      return infos;
    }
    for (const auto& gpu : library->gpus())
      for (const auto& sensor : sensors_of(library, gpu, notes)) infos.push_back(sensor->info());
    return infos;
  }

  std::unique_ptr<Sensor> open(const std::string& id) override {
    std::string reason;
    const auto library = Library::open(&reason);
    if (!library) throw UserError(fmt::format("sensor {}: NVML does not open: {}", id, reason));
    const std::string rest = id.find(':') == std::string::npos ? "" : id.substr(id.find(':') + 1);
    const std::string key = rest.substr(0, rest.find('/'));
    const NvmlDevice* gpu = library->find(key);
    if (!gpu) {
      std::string there;
      for (const auto& b : library->gpus()) there += fmt::format("\n  nvml:{}  {}  {}", b.index, b.name, b.uuid);
      throw UserError(fmt::format("sensor {}: NVML knows no such GPU; it has{}", id, there.empty() ? " none" : there));
    }
    std::vector<std::string> notes;
    if (rest.find('/') == std::string::npos) {
      auto sensors = sensors_of(library, *gpu, notes);
      if (sensors.empty())
        throw UserError(fmt::format("sensor {}: {} answers no power or energy question:\n  {}", id, gpu->name,
                                    fmt::join(notes, "\n  ")));
      return std::move(sensors.front());
    }
    const std::string role = rest.substr(rest.find('/') + 1);
    std::vector<std::string> names;
    for (const Role r : kRoles) {
      if (name_of(r) == role) {
        auto sensor = make(library, *gpu, r);
        if (answers(*sensor, notes)) return sensor;
        throw UserError(fmt::format("sensor {} is not available: {}", id, sensor->last_error()));
      }
      names.push_back(name_of(r));
    }
    throw UserError(fmt::format("sensor {}: no sensor \"{}\" of a GPU{}", id, role, suggestion(role, names)));
  }

  std::vector<std::unique_ptr<Sensor>> for_device(const std::string& uuid, const std::string& pci_address, bool is_cpu,
                                                  std::vector<std::string>& notes) override {
    if (is_cpu) return {};
    std::string reason;
    const auto library = Library::open(&reason);
    if (!library) {
      notes.push_back("NVML (NVIDIA GPUs): " + reason);
      return {};
    }
    const NvmlDevice* gpu = library->match(uuid, pci_address);
    if (!gpu) {
      notes.push_back(fmt::format("NVML (NVIDIA GPUs): none of its {} GPUs has this device's UUID or PCI address",
                                  library->gpus().size()));
      return {};
    }
    return sensors_of(library, *gpu, notes);
  }

  std::unique_ptr<DeviceMonitor> monitor(const std::string& uuid, const std::string& pci_address) override {
    return make_nvml_monitor(uuid, pci_address);
  }
  std::unique_ptr<DeviceMonitor> monitor_of(const std::string& control) override {
    if (control == "nvml") return make_nvml_monitor("0");
    return control.starts_with("nvml:") ? make_nvml_monitor(control.substr(5)) : nullptr;
  }
};

}  // namespace

std::unique_ptr<SensorFamily> make_nvml_family() { return std::make_unique<NvmlFamily>(); }

}  // namespace ergotune
