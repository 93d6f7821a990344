// NVIDIA Jetson (Tegra): INA3221 power monitors over sysfs, one channel per rail, in the layouts of two drivers:
//   hwmon (ina3221, JetPack 5 and later)   in{1..3}_label, in{1..3}_input mV, curr{1..3}_input mA
//   iio (ina3221x, older)                  rail_name_{0..2}, in_power{0..2}_input mW (else voltage and
//   current)
// "tegra:FOLDER" and "tegra:FOLDER/RAIL" are read where the driver's files lie elsewhere.
#include <fmt/format.h>

#include <algorithm>

#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor_family.hpp"
#include "power/sysfs_devices.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

struct Rail {
  std::string name;
  fs::path power;             ///< mW; empty: computed from current and voltage
  fs::path current, voltage;  ///< mA, mV
  double update_period = 0;   ///< s; 0: the driver does not report it
};

/// A channel's label, from its driver or from the device tree of the nearest folder above that has one.
std::string label_of(const Sysfs& sysfs, const fs::path& folder, const fs::path& own_label, int channel) {
  if (const auto text = sysfs.read(own_label); text && !text->empty()) return *text;
  for (fs::path chip = folder; chip.has_relative_path(); chip = chip.parent_path())
    for (const char* kind : {"channel", "input"}) {
      const std::string text =
          device_tree_text(sysfs, chip / "of_node" / fmt::format("{}@{}", kind, channel) / "label");
      if (!text.empty()) return text;
    }
  return {};
}

/// The channels whose files lie in this folder.
void add_channels(const Sysfs& sysfs, const fs::path& folder, std::vector<Rail>& rails) {
  const auto interval = sysfs.read_integer(folder / "update_interval");  // ms
  for (int channel = 0; channel < 3; ++channel) {
    Rail hwmon, iio;
    hwmon.current = folder / fmt::format("curr{}_input", channel + 1);
    hwmon.voltage = folder / fmt::format("in{}_input", channel + 1);
    hwmon.update_period = interval && *interval > 0 ? static_cast<double>(*interval) * 1e-3 : 0;
    iio.power = folder / fmt::format("in_power{}_input", channel);
    iio.current = folder / fmt::format("in_current{}_input", channel);
    iio.voltage = folder / fmt::format("in_voltage{}_input", channel);
    if (!sysfs.exists(iio.power)) iio.power.clear();
    for (auto& [rail, label] : {std::pair{&hwmon, fmt::format("in{}_label", channel + 1)},
                                std::pair{&iio, fmt::format("rail_name_{}", channel)}}) {
      if (rail->power.empty() && !(sysfs.exists(rail->current) && sysfs.exists(rail->voltage))) continue;
      rail->name = label_of(sysfs, folder, folder / label, channel);
      if (rail->name != "NC") rails.push_back(*rail);
    }
  }
}

/// Channels in a folder and below it, however deep the driver puts them. Links lead out of a chip's folder and are not
/// followed.
void find_channels(const Sysfs& sysfs, const fs::path& folder, int depth, std::vector<Rail>& rails) {
  add_channels(sysfs, folder, rails);
  if (depth == 0) return;
  for (const auto& entry : sysfs.list(folder)) {
    std::error_code code;
    if (fs::is_directory(fs::symlink_status(sysfs.real(folder / entry), code)))
      find_channels(sysfs, folder / entry, depth - 1, rails);
  }
}

constexpr int kDeepest = 6;  ///< folders below a chip's

std::vector<Rail> find_rails(const Sysfs& sysfs) {
  std::vector<Rail> rails;
  for (const char* driver : {"/sys/bus/i2c/drivers/ina3221", "/sys/bus/i2c/drivers/ina3221x"})
    for (const auto& entry : sysfs.list(driver))
      if (entry.find("-00") != std::string::npos)  // "1-0040": bus and address
        find_channels(sysfs, fs::path(driver) / entry, kDeepest, rails);
  std::erase_if(rails, [](const Rail& rail) { return rail.name.empty(); });
  return rails;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// True for the supply of the complete module, as named on Nano, TX2, Xavier NX and Orin.
bool is_module(const std::string& rail) {
  return rail == "VDD_IN" || rail == "POM_5V_IN" || rail == "VIN" || rail == "VDD_CPU_GPU_CV_SOC_IN";
}

class TegraSensor : public SysfsSensor {
 public:
  TegraSensor(const Sysfs& sysfs, SensorInfo info, Rail rail)
      : SysfsSensor(sysfs, std::move(info)), rail_(std::move(rail)) {}

  ReadStatus read(std::vector<Reading>& out) override {
    const double before = host_seconds();
    double watts{};
    if (!rail_.power.empty()) {
      const auto milliwatts = sysfs_.read_integer(rail_.power);
      if (!milliwatts) return fail(fmt::format("{} cannot be read", rail_.power.string()));
      watts = static_cast<double>(*milliwatts) * 1e-3;
    } else {
      const auto milliamperes = sysfs_.read_integer(rail_.current), millivolts = sysfs_.read_integer(rail_.voltage);
      if (!milliamperes || !millivolts) return fail(fmt::format("rail {} cannot be read", rail_.name));
      watts = static_cast<double>(*milliamperes) * 1e-3 * static_cast<double>(*millivolts) * 1e-3;
    }
    // a rail that is switched off (railgating) reads zero, which is not a measurement
    if (!(watts > 0)) return fail(fmt::format("rail {} reads {} W", rail_.name, watts));
    out.push_back({0.5 * (before + host_seconds()), corrected(watts)});
    return ReadStatus::ok;
  }

 private:
  Rail rail_;
};

class TegraMonitor : public DeviceMonitor {
 public:
  TegraMonitor(Sysfs sysfs, fs::path devfreq) : sysfs_(std::move(sysfs)), devfreq_(std::move(devfreq)) {
    if (const std::string given = environment_variable("ERGOTUNE_TEGRA_TEMPERATURE"); !given.empty()) {
      temperature_ = given;
      if (sysfs_.exists(temperature_ / "temp")) temperature_ /= "temp";
      return;
    }
    constexpr std::string_view kThermal = "/sys/class/thermal";
    for (const auto& entry : sysfs_.list(kThermal)) {
      const std::string type = sysfs_.read(fs::path(kThermal) / entry / "type").value_or("");
      if (type == "GPU-therm" || type == "gpu-thermal") temperature_ = fs::path(kThermal) / entry / "temp";
    }
  }
  DeviceState read() override {
    DeviceState state;
    if (const auto hertz = sysfs_.read_integer(devfreq_ / "cur_freq"); hertz && *hertz > 0)
      state.core_clock_mhz = static_cast<double>(*hertz) * 1e-6;
    if (const auto hertz = sysfs_.read_integer("/sys/kernel/debug/bpmp/debug/clk/emc/rate"); hertz && *hertz > 0)
      state.memory_clock_mhz = static_cast<double>(*hertz) * 1e-6;
    // a thermal zone of a sleeping GPU gives an error, older ones -256000
    if (const auto milli = temperature_.empty() ? std::nullopt : sysfs_.read_integer(temperature_);
        milli && *milli > -100000)
      state.temperature_c = static_cast<double>(*milli) * 1e-3;
    return state;
  }

 private:
  Sysfs sysfs_;
  fs::path devfreq_, temperature_;
};

SensorInfo describe(const Rail& rail, const std::string& folder = {}) {
  SensorInfo info;
  info.id = "tegra:" + folder + rail.name;
  info.name = "INA3221 rail " + rail.name;
  info.kind = SensorKind::instantaneous_power;
  info.scope = is_module(rail.name) ? SensorScope::module : SensorScope::rail;
  info.driver = rail.power.empty() ? "ina3221" : "ina3221x";
  info.unit_step = rail.power.empty() ? 0 : 1e-3;
  info.update_period = rail.update_period;
  return info;
}

class TegraFamily : public SensorFamily {
 public:
  std::string name() const override { return "tegra"; }

  std::vector<SensorInfo> list(std::vector<std::string>& notes) override {
    std::vector<SensorInfo> found;
    for (const auto& rail : rails_) found.push_back(describe(rail));
    if (found.empty()) notes.emplace_back("tegra: no INA3221 power monitor below /sys/bus/i2c/drivers");
    return found;
  }

  std::unique_ptr<Sensor> open(const std::string& id) override {
    if (id.starts_with("tegra:/")) return open_below(id);
    std::vector<std::string> notes;
    const SensorInfo info = choose_sensor(id, "tegra", list(notes), notes);
    const auto rail = std::ranges::find_if(rails_, [&](const Rail& r) { return "tegra:" + r.name == info.id; });
    return std::make_unique<TegraSensor>(sysfs_, info, *rail);
  }

  std::vector<std::unique_ptr<Sensor>> for_device(const std::string&, const std::string&, bool is_cpu,
                                                  std::vector<std::string>& notes) override {
    std::vector<std::unique_ptr<Sensor>> sensors;
    const std::string_view part = is_cpu ? "CPU" : "GPU";
    for (const auto& info : list(notes))
      if (contains(info.id, part) || info.scope == SensorScope::module) sensors.push_back(open(info.id));
    std::ranges::stable_sort(sensors, [&](const auto& a, const auto& b) {
      return contains(a->info().id, part) && !contains(b->info().id, part);
    });
    return sensors;
  }

  std::unique_ptr<DeviceMonitor> monitor(const std::string& uuid, const std::string&) override {
    return uuid.empty() ? nullptr : gpu_monitor();  // not for the CPU, since these are the GPU's clock and temperature
  }
  std::unique_ptr<DeviceMonitor> monitor_of(const std::string& control) override {
    return control == "tegra" ? gpu_monitor() : nullptr;
  }

 private:
  /// GPU rails first, the module's supply next: what "tegra" or a folder alone means.
  static std::vector<Rail> best_first(std::vector<Rail> rails) {
    std::ranges::stable_sort(rails, [](const Rail& a, const Rail& b) {
      const auto rank = [](const Rail& rail) { return is_module(rail.name) ? 1 : contains(rail.name, "GPU") ? 0 : 2; };
      return rank(a) < rank(b);
    });
    return rails;
  }
  /// "tegra:/sys/class/hwmon/hwmon3" or, with the rail's label at its end, ".../hwmon3/VDD_GPU_SOC".
  std::unique_ptr<Sensor> open_below(const std::string& id) const {
    fs::path folder = id.substr(std::string_view("tegra:").size());
    std::string label;
    if (!folder.has_filename()) folder = folder.parent_path();
    if (!sysfs_.exists(folder)) {
      label = folder.filename().string();
      folder = folder.parent_path();
    }
    std::vector<Rail> rails;
    find_channels(sysfs_, folder, kDeepest, rails);
    std::string labels;
    rails = best_first(std::move(rails));
    for (const Rail& rail : rails) {
      if (label.empty() || rail.name == label)
        return std::make_unique<TegraSensor>(sysfs_, describe(rail, folder.string() + "/"), rail);
      labels += (labels.empty() ? ": it has " : ", ") + rail.name;
    }
    throw UserError(fmt::format("\"{}\": no power of an INA3221{} below {}{}", id,
                                label.empty() ? "" : " with the label " + label, folder.string(), labels));
  }
  std::unique_ptr<DeviceMonitor> gpu_monitor() const {
    const fs::path folder = tegra_devfreq(sysfs_);
    return folder.empty() ? nullptr : std::make_unique<TegraMonitor>(sysfs_, folder);
  }
  Sysfs sysfs_ = Sysfs::from_environment();
  std::vector<Rail> rails_ = best_first(find_rails(sysfs_));
};

}  // namespace

std::unique_ptr<SensorFamily> make_tegra_family() { return std::make_unique<TegraFamily>(); }

}  // namespace ergotune
