#include "power/sensors/temperature_coefficient.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor_semantics.hpp"

namespace ergotune {

std::filesystem::path temperature_coefficient_file(const SensorInfo& info) {
  std::filesystem::path file = calibration_file(info);
  if (!file.empty()) file.replace_extension(".temperature.json");
  return file;
}

std::optional<TemperatureCoefficient> kept_temperature_coefficient(const SensorInfo& info) {
  const auto file = temperature_coefficient_file(info);
  const auto text = file.empty() ? std::nullopt : read_file(file);
  if (!text) return std::nullopt;
  try {
    const auto document = nlohmann::json::parse(*text);
    if (document.at("driver").get<std::string>() != info.driver) return std::nullopt;
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
  std::error_code trouble;
  std::filesystem::create_directories(file.parent_path(), trouble);
  const nlohmann::ordered_json document{{"board", info.uuid.empty() ? info.id : info.uuid},
                                        {"driver", info.driver},
                                        {"watts_per_degree", found.watts_per_degree},
                                        {"standard_error", found.standard_error},
                                        {"coolest_c", found.coolest},
                                        {"hottest_c", found.hottest},
                                        {"when", iso_time(wall_seconds())}};
  if (const int code = write_file(file, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
      code != 0)
    throw Error(fmt::format("cannot write {}: {}", file.string(), std::strerror(code)));
  return file;
}

}  // namespace ergotune
