// Which sensors measure the same energy, since energies are added and must not be counted twice.
#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
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
  std::ranges::stable_partition(all, [](const SensorInfo& info) { return info.scope != SensorScope::rail; });
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
