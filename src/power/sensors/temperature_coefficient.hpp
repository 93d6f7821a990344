// Temperature coefficient of a GPU's power (leakage), as determined by `ergotune temperature`. Stored per GPU and
// driver, next to the calibration of its sensors.
#pragma once

#include <filesystem>
#include <optional>

#include "power/sensors/sensor.hpp"

namespace ergotune {

struct TemperatureCoefficient {
  double watts_per_degree = 0, standard_error = 0;
  double coolest = 0, hottest = 0;  ///< range of temperatures in °C over which it was determined
};

/// Returns the path of the file; empty if there is no folder for it (HOME, ERGOTUNE_DATA_DIR). `info`: any sensor of
/// the GPU.
std::filesystem::path temperature_coefficient_file(const SensorInfo& info);
/// Returns nullopt if none is stored for this driver.
std::optional<TemperatureCoefficient> kept_temperature_coefficient(const SensorInfo& info);
/// Stores the coefficient and returns the path. Throws Error if the file cannot be written.
std::filesystem::path store_temperature_coefficient(const SensorInfo& info, const TemperatureCoefficient& found);

}  // namespace ergotune
