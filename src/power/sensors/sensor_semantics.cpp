#include "power/sensors/sensor_semantics.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/process/environment.hpp"

namespace ergotune {

std::filesystem::path calibration_folder() {
  std::filesystem::path data = environment_variable("ERGOTUNE_DATA_DIR");
  if (data.empty()) data = user_folder("XDG_DATA_HOME", ".local/share");
  return data.empty() ? data : data / "calibration";
}

std::filesystem::path calibration_file(const SensorInfo& info) {
  const auto folder = calibration_folder();
  if (folder.empty()) return {};
  std::string name = !info.uuid.empty() ? info.uuid : !info.pci_address.empty() ? info.pci_address : info.id;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return folder / (name + ".json");
}

std::string sensor_role(const SensorInfo& info) {
  const auto slash = info.id.find('/');
  const bool on_gpu = !info.uuid.empty() || !info.pci_address.empty();
  return on_gpu && slash != std::string::npos ? info.id.substr(slash + 1) : info.id;
}

namespace {

/// Reads gain and offset with their uncertainty. Older files contain two plain numbers; a gain may be an interval.
void read_meter(const nlohmann::json& meter, SensorInfo& info) {
  const auto number = [](const nlohmann::json& object, const char* name, double& to) {
    const auto entry = object.find(name);
    if (entry != object.end() && entry->is_number()) to = entry->get<double>();
  };
  const auto value = [&](const char* name, double& to) {
    number(meter, name, to);
    if (const auto entry = meter.find(name); entry != meter.end()) number(*entry, "value", to);
  };
  value("gain", info.gain);
  value("offset", info.offset);
  if (const auto gain = meter.find("gain"); gain != meter.end() && gain->is_object() && info.gain > 0) {
    double low = info.gain, high = info.gain;
    number(*gain, "low", low);
    number(*gain, "high", high);
    info.gain_error = (high - low) / (2 * 1.96 * info.gain);
  }
  number(meter, "gain_error", info.gain_error);
  number(meter, "level", info.level);
  number(meter, "level_error", info.level_error);
}

}  // namespace

bool apply_stored_calibration(SensorInfo& info) {
  const auto file = calibration_file(info);
  if (file.empty()) return false;
  std::ifstream in(file);
  if (!in) return false;
  const auto document = nlohmann::json::parse(in, nullptr, false);
  if (!document.is_object() || document.value("driver", "") != info.driver) return false;
  const auto sensors = document.find("sensors");
  if (sensors == document.end()) return false;
  const auto found = sensors->find(sensor_role(info));
  if (found == sensors->end() || !found->is_object()) return false;
  const auto& stored = *found;
  auto number = [&](const char* name, double& to) {
    const auto entry = stored.find(name);
    if (entry == stored.end()) return;
    const auto& value = entry->contains("value") ? (*entry)["value"] : *entry;
    if (value.is_number() && value.get<double>() >= 0) to = value.get<double>();
  };
  number("update_period", info.update_period);
  number("window", info.window);
  number("lag", info.lag);
  number("read_cost", info.read_cost);
  number("unit_step", info.unit_step);
  number("repeatability", info.repeatability);
  if (const auto meter = stored.find("meter"); meter != stored.end()) read_meter(*meter, info);
  if (const auto kind = stored.value("kind", std::string{}); !kind.empty())
    for (const auto k : {SensorKind::cumulative_energy, SensorKind::instantaneous_power, SensorKind::windowed_power,
                         SensorKind::exponential_power})
      if (to_string(k) == kind) info.kind = k;
  info.calibrated = true;
  return true;
}

}  // namespace ergotune
