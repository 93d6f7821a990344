// The table of sensor families, and the functions that query all of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control.hpp"
#include "power/sensors/sensor.hpp"
#include "power/sensors/sensor_family.hpp"
#include "power/sensors/stored_calibration.hpp"

namespace ergotune {
namespace {

/// Replaces the properties known for the sensor's type by those of a stored calibration.
std::unique_ptr<Sensor> calibrated(std::unique_ptr<Sensor> sensor) {
  SensorInfo info = sensor->info();
  if (apply_stored_calibration(info)) sensor->set_info(info);
  return sensor;
}

/// Best first: a device's own sensors before those of the package or node that contains it.
std::vector<std::unique_ptr<SensorFamily>> make_families() {
  std::vector<std::unique_ptr<SensorFamily>> families;
  families.push_back(make_nvml_family());
  families.push_back(make_amdgpu_family());
  families.push_back(make_tegra_family());
  families.push_back(make_pm_counters_family());
  families.push_back(make_rapl_family());
  families.push_back(make_powersensor3_family());
  families.push_back(make_powersensor2_family());
  families.push_back(make_command_family());
  return families;
}

}  // namespace

std::vector<SensorInfo> list_sensors() {
  std::vector<SensorInfo> all;
  std::vector<std::string> notes;
  for (const auto& family : make_families()) {
    for (SensorInfo& info : family->list(notes)) {
      apply_stored_calibration(info);
      all.push_back(std::move(info));
    }
  }
  return all;
}

std::unique_ptr<Sensor> open_sensor(const std::string& id) {
  const std::string prefix = id.substr(0, id.find(':'));
  std::vector<std::string> names;
  for (const auto& family : make_families()) {
    if (family->name() == prefix) return calibrated(family->open(id));
    names.push_back(family->name());
  }
  throw UserError(fmt::format("unknown sensor \"{}\": an id begins with its kind{}", id, suggestion(prefix, names)));
}

std::vector<std::unique_ptr<Sensor>> sensors_for_device(const std::string& uuid, const std::string& pci_address,
                                                        bool is_cpu, std::vector<std::string>* looked_for) {
  std::vector<std::string> notes;
  std::vector<std::unique_ptr<Sensor>> sensors;
  for (const auto& family : make_families()) {
    for (auto& sensor : family->for_device(uuid, pci_address, is_cpu, notes))
      sensors.push_back(calibrated(std::move(sensor)));
    // A device's own sensors are better than those of its package or node.
    if (!sensors.empty()) break;
  }
  if (looked_for) looked_for->insert(looked_for->end(), notes.begin(), notes.end());
  return sensors;
}

std::unique_ptr<DeviceMonitor> monitor_for_device(const std::string& uuid, const std::string& pci_address) {
  for (const auto& family : make_families())
    if (auto monitor = family->monitor(uuid, pci_address)) return monitor;
  return nullptr;
}

std::unique_ptr<DeviceMonitor> monitor_for_control(const std::string& id) {
  for (const auto& family : make_families())
    if (auto monitor = family->monitor_of(id)) return monitor;
  return id == "cpufreq" ? make_cpufreq_monitor() : nullptr;
}

std::optional<double> seconds_until_core_clock(DeviceMonitor& monitor, double mhz, double tolerance) {
  constexpr double kLongest = 0.1;  // s
  const double begin = host_seconds();
  while (host_seconds() - begin < kLongest) {
    const auto now = monitor.read().core_clock_mhz;
    if (!now) break;
    if (same_clock(mhz, *now, tolerance)) return host_seconds() - begin;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

std::string to_string(SensorKind kind) {
  constexpr std::array kNames = {"cumulative_energy", "instantaneous_power", "windowed_power", "exponential_power"};
  return kNames.at(static_cast<std::size_t>(kind));
}

bool exists_unreadable(const Sysfs& sysfs, const std::filesystem::path& path) {
  // checked for the effective user, as when reading
  return sysfs.exists(path) && faccessat(AT_FDCWD, sysfs.real(path).c_str(), R_OK, AT_EACCESS) != 0;
}

const SensorInfo& choose_sensor(const std::string& id, const std::string& family, const std::vector<SensorInfo>& list,
                                const std::vector<std::string>& notes) {
  std::vector<std::string> ids;
  for (const auto& info : list) {
    if (info.id == id || id == family) return info;
    ids.push_back(info.id);
  }
  std::string reasons;
  for (const auto& note : notes) reasons += (reasons.empty() ? "" : "; ") + note;
  if (ids.empty())
    throw UserError(fmt::format("there is no sensor \"{}\" here{}{}", id, reasons.empty() ? "" : ": ", reasons));
  throw UserError(
      fmt::format("there is no sensor \"{}\"{}{}{}", id, suggestion(id, ids), reasons.empty() ? "" : "; ", reasons));
}

// Which sensors measure the same energy, since energies are added and must not be counted twice.
namespace {

std::string family_of(const SensorInfo& info) { return info.id.substr(0, info.id.find(':')); }

/// True for a RAPL memory domain, which is not part of its package.
bool is_rapl_memory(const SensorInfo& info) { return info.id.ends_with("/dram"); }

/// Returns "nvml:0" for "nvml:0/energy".
std::string device_of(const SensorInfo& info) { return info.id.substr(0, info.id.find('/')); }

bool rapl_covers(const SensorInfo& whole, const SensorInfo& part) {
  if (whole.id == "rapl:psys") return true;
  if (is_rapl_memory(part)) return false;
  return whole.id == "rapl:packages" || (part.id.starts_with(whole.id + "/"));
}

/// Cray's counters have no device address: their accelerators are the GPUs that other drivers report, and their CPU is
/// the packages.
bool cray_covers(const SensorInfo& whole, const SensorInfo& part) {
  if (whole.id == "pm_counters:node") return true;
  if (whole.id.starts_with("pm_counters:accel")) return part.scope == SensorScope::gpu;
  if (family_of(part) != "rapl") return false;
  return is_rapl_memory(part) ? whole.id == "pm_counters:memory" : whole.id == "pm_counters:cpu";
}

bool covers(const SensorInfo& whole, const SensorInfo& part) {
  const std::string family = family_of(whole);
  if (family == "pm_counters") return cray_covers(whole, part);
  if (family != family_of(part)) return false;
  if (family == "rapl") return rapl_covers(whole, part);
  if (family == "tegra") return whole.scope == SensorScope::module;
  return (family == "nvml" || family == "amdgpu") && device_of(whole) == device_of(part);
}

}  // namespace

bool sensors_overlap(const SensorInfo& a, const SensorInfo& b) {
  const bool same = a.id == b.id || (!a.uuid.empty() && a.uuid == b.uuid) ||
                    (!a.pci_address.empty() && a.pci_address == b.pci_address);
  return same || covers(a, b) || covers(b, a);
}

void require_disjoint(const std::vector<std::unique_ptr<Sensor>>& sensors) {
  for (std::size_t i = 0; i < sensors.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (sensors_overlap(sensors[i]->info(), sensors[j]->info()))
        throw UserError(fmt::format(
            "the sensors {} and {} see the same energy, and energies of several sensors are added; name one of them",
            sensors[j]->info().id, sensors[i]->info().id));
}

std::vector<std::string> sensors_of_machine() {
  std::vector<SensorInfo> all = list_sensors(), chosen;
  // Rails are parts of a module if its supply is measured, too.
  std::stable_partition(all.begin(), all.end(), [](const SensorInfo& info) { return info.scope != SensorScope::rail; });
  for (SensorInfo& info : all) {
    const bool part = family_of(info) == "rapl" && device_of(info) != info.id;
    const auto overlaps = [&](const SensorInfo& other) { return sensors_overlap(info, other); };
    if (!part && std::ranges::none_of(chosen, overlaps)) chosen.push_back(std::move(info));
  }
  std::vector<std::string> ids;
  for (const SensorInfo& info : chosen) ids.push_back(info.id);
  return ids;
}

}  // namespace ergotune
