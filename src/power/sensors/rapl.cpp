// RAPL (running average power limit) of Intel and AMD: energy counters of CPU packages below /sys/class/powercap.
#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {
namespace {

constexpr std::string_view kPowercap = "/sys/class/powercap";
/// Upper bound of a package's power in W, which limits the time between two reads in which a counter may wrap.
constexpr double kMostPower = 1000;

struct Zone {
  std::string name;  ///< "package-0", "package-0/core", "psys"
  std::filesystem::path folder;
  bool is_package;
};

/// Finds the zones: intel-rapl:N are packages (and psys), intel-rapl:N:M are their parts. AMD's counters have the same
/// names.
std::vector<Zone> find_zones(const Sysfs& sysfs) {
  std::vector<Zone> zones;
  for (const auto& entry : sysfs.list(kPowercap)) {
    if (!entry.starts_with("intel-rapl:")) continue;  // skips intel-rapl-mmio, which are the same counters
    const auto folder = std::filesystem::path(kPowercap) / entry;
    const auto name = sysfs.read(folder / "name");
    if (!name || !sysfs.exists(folder / "energy_uj")) continue;
    const bool part = std::ranges::count(entry, ':') == 2;
    const auto parent = std::filesystem::path(kPowercap) / entry.substr(0, entry.rfind(':'));
    const std::string package = part ? sysfs.read(parent / "name").value_or("package") : "";
    zones.push_back({part ? package + "/" + *name : *name, folder, !part && name->starts_with("package")});
  }
  return zones;
}

/// A counter that is continued across wraps.
class Counter {
 public:
  Counter(const Sysfs& sysfs, const Zone& zone)
      : file_(zone.folder / "energy_uj"),
        range_(static_cast<double>(sysfs.read_integer(zone.folder / "max_energy_range_uj").value_or(0)) * 1e-6) {}

  /// Returns joules since the first read; nullopt with the reason in `why` if the file has no value or if too much time
  /// has passed.
  std::optional<double> read(const Sysfs& sysfs, double now, std::string& why) {
    const auto microjoules = sysfs.read_integer(file_);
    if (!microjoules || *microjoules < 0) {
      why = fmt::format("{} gives no number", file_.string());
      return std::nullopt;
    }
    const double joules = static_cast<double>(*microjoules) * 1e-6;
    if (last_) {
      if (range_ > 0 && now - last_time_ > range_ / kMostPower) {
        why = fmt::format("not read for {:.0f} s: the counter may have wrapped more than once", now - last_time_);
        last_ = joules;
        last_time_ = now;
        return std::nullopt;
      }
      double step = joules - *last_;
      if (step < 0) step += range_;
      if (step < 0) {
        why = fmt::format("{} went backwards, and its range is not known", file_.string());
        last_ = joules;
        return std::nullopt;
      }
      total_ += step;
    }
    last_ = joules;
    last_time_ = now;
    return total_;
  }

 private:
  std::filesystem::path file_;
  double range_;  ///< J
  std::optional<double> last_;
  double last_time_{}, total_ = 0;
};

class RaplSensor : public SysfsSensor {
 public:
  RaplSensor(const Sysfs& sysfs, SensorInfo info, const std::vector<Zone>& zones)
      : SysfsSensor(sysfs, std::move(info)) {
    for (const auto& zone : zones) counters_.emplace_back(sysfs, zone);
  }

  ReadStatus read(std::vector<Reading>& out) override {
    const double before = host_seconds();
    double joules = 0;
    for (auto& counter : counters_) {
      std::string why;
      const auto value = counter.read(sysfs_, before, why);
      if (!value) return fail(why);
      joules += *value;
    }
    if (joules == last_) return ReadStatus::no_new_data;
    last_ = joules;
    out.push_back({0.5 * (before + host_seconds()), corrected(joules)});
    return ReadStatus::ok;
  }

 private:
  std::vector<Counter> counters_;
  double last_ = -1;
};

SensorInfo describe(const std::string& id, const std::string& name) {
  SensorInfo info;
  info.id = id;
  info.name = name;
  info.kind = SensorKind::cumulative_energy;
  info.scope = SensorScope::package;
  info.driver = "powercap";
  info.unit_step = 6.1e-5;    // the usual unit, 2^-14 J; calibration determines it per CPU
  info.update_period = 1e-3;  // Intel SDM vol. 3B, 14.9
  return info;
}

class RaplFamily : public SensorFamily {
 public:
  std::string name() const override { return "rapl"; }

  std::vector<SensorInfo> list(std::vector<std::string>& notes) override {
    std::vector<SensorInfo> found;
    std::size_t packages = 0;
    for (const auto& zone : readable_zones(notes)) {
      found.push_back(describe("rapl:" + zone.name, "RAPL " + zone.name));
      packages += zone.is_package;
    }
    if (packages > 1)
      found.insert(found.begin(), describe("rapl:packages", fmt::format("RAPL, {} packages together", packages)));
    return found;
  }

  std::unique_ptr<Sensor> open(const std::string& id) override {
    std::vector<std::string> notes;
    const SensorInfo info = choose_sensor(id, "rapl", list(notes), notes);
    std::vector<Zone> chosen;
    for (const auto& zone : readable_zones(notes))
      if (info.id == "rapl:packages" ? zone.is_package : info.id == "rapl:" + zone.name) chosen.push_back(zone);
    return std::make_unique<RaplSensor>(sysfs_, info, chosen);
  }

  std::vector<std::unique_ptr<Sensor>> for_device(const std::string&, const std::string&, bool is_cpu,
                                                  std::vector<std::string>& notes) override {
    std::vector<std::unique_ptr<Sensor>> sensors;
    // not for a GPU, since the power of the CPU package does not include it
    if (is_cpu && !list(notes).empty()) sensors.push_back(open("rapl"));
    return sensors;
  }

 private:
  std::vector<Zone> readable_zones(std::vector<std::string>& notes) {
    std::vector<Zone> zones = find_zones(sysfs_), readable;
    for (const auto& zone : zones)
      if (!exists_unreadable(sysfs_, zone.folder / "energy_uj")) readable.push_back(zone);
    if (zones.empty()) {
      notes.push_back(fmt::format("rapl: no energy counter below {}", kPowercap));
    } else if (readable.empty()) {
      notes.push_back(
          fmt::format("rapl: {} can be read by root only; let an administrator allow it with \"chmod a+r "
                      "{}/intel-rapl:*/energy_uj\", or run as root",
                      (zones[0].folder / "energy_uj").string(), kPowercap));
    }
    return readable;
  }

  Sysfs sysfs_ = Sysfs::from_environment();
};

}  // namespace

std::unique_ptr<SensorFamily> make_rapl_family() { return std::make_unique<RaplFamily>(); }

}  // namespace ergotune
