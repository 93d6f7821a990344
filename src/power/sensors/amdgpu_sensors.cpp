// AMD GPUs through the amdgpu driver's files: power and state of the GPU in hwmon, energy in gpu_metrics.
#include <fmt/format.h>

#include "base/sysfs.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/amdgpu_energy.hpp"

namespace ergotune {
namespace {

/// A device whose power can be read.
struct Card : DrmDevice {
  std::filesystem::path hwmon;
  std::string power_file;  ///< power1_average or power1_input
};

std::vector<Card> find_drm_devices(const Sysfs& sysfs) {
  std::vector<Card> cards;
  for (const auto& card : drm_devices(sysfs)) {
    for (const auto& hwmon : sysfs.list(card.device / "hwmon")) {
      const auto folder = card.device / "hwmon" / hwmon;
      if (sysfs.read(folder / "name").value_or("amdgpu") != "amdgpu") continue;
      for (const char* file : {"power1_average", "power1_input"}) {
        if (!sysfs.exists(folder / file)) continue;
        cards.push_back({card, folder, file});
        break;
      }
    }
  }
  return cards;
}

class AmdgpuSensor : public SysfsSensor {
 public:
  AmdgpuSensor(const Sysfs& sysfs, SensorInfo info, std::filesystem::path file)
      : SysfsSensor(sysfs, std::move(info)), file_(std::move(file)) {}

  ReadStatus read(std::vector<Reading>& out) override {
    const double before = host_seconds();
    const auto microwatts = sysfs_.read_integer(file_);
    // a sleeping GPU returns EPERM or 0, neither of which is a power
    if (!microwatts || *microwatts <= 0) return fail(fmt::format("{} gives no power", file_.string()));
    out.push_back({0.5 * (before + host_seconds()), corrected(static_cast<double>(*microwatts) * 1e-6)});
    return ReadStatus::ok;
  }

 private:
  std::filesystem::path file_;
};

class AmdgpuMonitor : public DeviceMonitor {
 public:
  AmdgpuMonitor(Sysfs sysfs, Card card) : sysfs_(std::move(sysfs)), card_(std::move(card)) {}
  DeviceState read() override {
    DeviceState state;
    state.core_clock_mhz = scaled("freq1_input", 1e-6);
    state.memory_clock_mhz = scaled("freq2_input", 1e-6);
    state.temperature_c = scaled("temp1_input", 1e-3);
    state.core_voltage_v = scaled("in0_input", 1e-3);
    state.power_w = scaled(card_.power_file.c_str(), 1e-6);
    state.power_limit_w = scaled("power1_cap", 1e-6);
    // The firmware's reasons for a low clock are preferred; otherwise a power at the limit is taken as the reason.
    std::string ignored;
    if (const auto metrics = read_gpu_metrics(sysfs_, card_, ignored)) {
      if (!state.core_clock_mhz) state.core_clock_mhz = metrics->core_clock_mhz;
      throttle_.note(*metrics, state);
      if (metrics->throttle_status || metrics->residency) return state;
    }
    if (state.power_w && state.power_limit_w && *state.power_w >= 0.97 * *state.power_limit_w)
      state.clock_reasons.emplace_back("power_cap");
    return state;
  }

 private:
  std::optional<double> scaled(const char* file, double scale) const {
    const auto value = sysfs_.read_integer(card_.hwmon / file);
    if (!value || *value <= 0) return std::nullopt;
    return static_cast<double>(*value) * scale;
  }
  Sysfs sysfs_;
  Card card_;
  AmdgpuThrottle throttle_;
};

SensorInfo describe(const Card& card) {
  SensorInfo info;
  info.id = "amdgpu:" + card.name;
  info.name = "amdgpu " + card.name + " " + card.power_file;
  // the firmware's averaging time depends on the generation
  info.kind = card.power_file == "power1_average" ? SensorKind::windowed_power : SensorKind::instantaneous_power;
  info.scope = SensorScope::gpu;
  info.pci_address = card.pci_address;
  info.driver = "amdgpu";
  info.unit_step = 1e-6;
  if (info.kind == SensorKind::windowed_power) {
    // Longer than all known windows, until calibration determines it. A window that is too long costs time; one that is
    // too short costs accuracy.
    info.window = 1.0;
    info.update_period = 0.1;
  }
  return info;
}

class AmdgpuFamily : public SensorFamily {
 public:
  std::string name() const override { return "amdgpu"; }

  std::vector<SensorInfo> list(std::vector<std::string>& notes) override {
    std::vector<SensorInfo> found;
    const auto energy = list_amdgpu_energy(sysfs_, notes);
    for (const auto& card : find_drm_devices(sysfs_)) found.push_back(describe(card));
    found.insert(found.begin(), energy.begin(), energy.end());  // best first
    if (found.empty()) notes.push_back(fmt::format("amdgpu: no GPU with a power or energy reading below {}", kDrm));
    return found;
  }

  std::unique_ptr<Sensor> open(const std::string& id) override {
    std::vector<std::string> notes;
    const SensorInfo info = choose_sensor(id, "amdgpu", list(notes), notes);
    for (const DrmDevice& card : drm_devices(sysfs_))
      if (info.id == "amdgpu:" + card.name + "/energy") return open_amdgpu_energy(sysfs_, info, card);
    for (const auto& card : find_drm_devices(sysfs_))
      if (info.id == "amdgpu:" + card.name)
        return std::make_unique<AmdgpuSensor>(sysfs_, info, card.hwmon / card.power_file);
    throw UserError(fmt::format("the sensor \"{}\" has just gone", id));
  }

  std::vector<std::unique_ptr<Sensor>> for_device(const std::string&, const std::string& pci_address, bool,
                                                  std::vector<std::string>& notes) override {
    std::vector<std::unique_ptr<Sensor>> sensors;
    const auto all = list(notes);
    for (const auto& info : all)
      if (!pci_address.empty() && info.pci_address == normalise_pci_address(pci_address))
        sensors.push_back(open(info.id));
    if (!all.empty() && sensors.empty() && !pci_address.empty())
      notes.push_back(fmt::format("amdgpu: no GPU at {}", pci_address));
    return sensors;
  }

  std::unique_ptr<DeviceMonitor> monitor(const std::string&, const std::string& pci_address) override {
    for (const auto& card : find_drm_devices(sysfs_))
      if (!pci_address.empty() && card.pci_address == normalise_pci_address(pci_address))
        return std::make_unique<AmdgpuMonitor>(sysfs_, card);
    return nullptr;
  }
  std::unique_ptr<DeviceMonitor> monitor_of(const std::string& control) override {
    for (const auto& card : find_drm_devices(sysfs_))
      if (control == "amdgpu" || control == "amdgpu:" + card.name) return std::make_unique<AmdgpuMonitor>(sysfs_, card);
    return nullptr;
  }

 private:
  Sysfs sysfs_ = Sysfs::from_environment();
};

}  // namespace

std::unique_ptr<SensorFamily> make_amdgpu_family() { return std::make_unique<AmdgpuFamily>(); }

}  // namespace ergotune
