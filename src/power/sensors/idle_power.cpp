#include "power/sensors/idle_power.hpp"

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "power/sensors/sensor_semantics.hpp"

namespace ergotune {

std::optional<IdlePower> calibrated_idle_power(const SensorInfo& info) {
  const auto file = calibration_file(info);
  const auto text = file.empty() ? std::nullopt : read_file(file);
  if (!text) return std::nullopt;
  const auto document = nlohmann::json::parse(*text, nullptr, false);
  if (!document.is_object() || document.value("driver", "") != info.driver) return std::nullopt;
  try {
    const auto& found = document.at("sensors").at(sensor_role(info)).at("idle_power");
    const IdlePower idle{found.at("value").get<double>(),
                         (found.at("high").get<double>() - found.at("low").get<double>()) / (2 * 1.96)};
    if (idle.watts > 0 && idle.standard_error >= 0) return idle;
  } catch (const nlohmann::json::exception&) {
    // the calibration did not determine idle power
  }
  return std::nullopt;
}

}  // namespace ergotune
