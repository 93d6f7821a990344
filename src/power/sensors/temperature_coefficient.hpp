// How a GPU's power changes with its temperature, as `ergotune temperature` found it: leakage. Kept per GPU and
// driver beside the calibration of its sensors.
#pragma once

#include <filesystem>
#include <optional>

#include "power/sensors/sensor.hpp"

namespace ergotune {

struct TemperatureCoefficient {
  double watts_per_degree = 0, standard_error = 0;
  double coolest = 0, hottest = 0;  ///< °C between which it was seen
};

/// Where it is kept; empty when there is no home for it (HOME, ERGOTUNE_DATA_DIR). `info`: any sensor of the GPU.
std::filesystem::path temperature_coefficient_file(const SensorInfo& info);
/// nullopt: none, or one of another driver.
std::optional<TemperatureCoefficient> kept_temperature_coefficient(const SensorInfo& info);
/// The file. Throws Error when that is impossible.
std::filesystem::path keep_temperature_coefficient(const SensorInfo& info, const TemperatureCoefficient& found);

}  // namespace ergotune
