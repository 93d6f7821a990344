#include "power/sensors/stored_calibration.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "base/process/environment.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// A stored document of this driver; null where there is none.
nlohmann::json stored_document(const std::filesystem::path& file, const SensorInfo& info) {
  const auto text = file.empty() ? std::nullopt : read_file(file);
  auto document = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  const bool valid = document.is_object() && document.value("driver", nlohmann::json("")) == info.driver;
  return valid ? document : nlohmann::json();
}

/// What the calibration has found of the sensor; null where it is not calibrated.
nlohmann::json stored_sensor(const SensorInfo& info) {
  const nlohmann::json document = stored_document(calibration_file(info), info);
  const auto sensors = document.find("sensors");
  if (sensors == document.end() || !sensors->is_object()) return nullptr;
  return sensors->value(sensor_role(info), nlohmann::json());
}

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

bool apply_stored_calibration(SensorInfo& info) {
  const nlohmann::json stored = stored_sensor(info);
  if (!stored.is_object()) return false;
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

std::optional<IdlePower> calibrated_idle_power(const SensorInfo& info) {
  try {
    const nlohmann::json sensor = stored_sensor(info);
    const nlohmann::json& found = sensor.at("idle_power");
    const IdlePower idle{found.at("value").get<double>(),
                         (found.at("high").get<double>() - found.at("low").get<double>()) / (2 * 1.96)};
    if (idle.watts > 0 && idle.standard_error >= 0) return idle;
  } catch (const nlohmann::json::exception&) {
    // the calibration did not determine idle power
  }
  return std::nullopt;
}

std::filesystem::path temperature_coefficient_file(const SensorInfo& info) {
  std::filesystem::path file = calibration_file(info);
  if (!file.empty()) file.replace_extension(".temperature.json");
  return file;
}

std::optional<TemperatureCoefficient> kept_temperature_coefficient(const SensorInfo& info) {
  try {
    const nlohmann::json document = stored_document(temperature_coefficient_file(info), info);
    const TemperatureCoefficient kept{document.at("watts_per_degree").get<double>(),
                                      document.at("standard_error").get<double>(),
                                      document.at("coolest_c").get<double>(), document.at("hottest_c").get<double>()};
    if (std::isfinite(kept.watts_per_degree) && kept.standard_error >= 0) return kept;
  } catch (const nlohmann::json::exception&) {
    // not a valid file; it will be overwritten
  }
  return std::nullopt;
}

std::filesystem::path store_temperature_coefficient(const SensorInfo& info, const TemperatureCoefficient& found) {
  const auto file = temperature_coefficient_file(info);
  if (file.empty()) throw Error("nowhere to keep the coefficient: HOME is not set (or give ERGOTUNE_DATA_DIR)");
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  const nlohmann::ordered_json document{{"board", info.uuid.empty() ? info.id : info.uuid},
                                        {"driver", info.driver},
                                        {"watts_per_degree", found.watts_per_degree},
                                        {"standard_error", found.standard_error},
                                        {"coolest_c", found.coolest},
                                        {"hottest_c", found.hottest},
                                        {"when", iso_time(wall_seconds())}};
  if (const int code = write_file(file, json_text(document, 2) + "\n"); code != 0)
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(code)));
  return file;
}

}  // namespace ergotune
