// What the calibration of a GPU's sensors and `ergotune temperature` have stored on disk, under one driver: the
// sensors' properties, which are applied when they are opened, the idle power, and the temperature coefficient
// (leakage).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "power/sensors/sensor.hpp"

namespace ergotune {

/// Returns $ERGOTUNE_DATA_DIR or $XDG_DATA_HOME/ergotune or ~/.local/share/ergotune, with "/calibration" appended;
/// empty if there is no home directory.
std::filesystem::path calibration_folder();
/// Returns the file for a sensor's GPU, a JSON document with one member per sensor.
std::filesystem::path calibration_file(const SensorInfo& info);
/// Returns the sensor's name within its GPU, such as "energy" for "nvml:0/energy"; the id itself if it belongs to no
/// GPU.
std::string sensor_role(const SensorInfo& info);
/// Replaces the properties in `info` by those stored for this GPU and driver; returns false if there are none.
bool apply_stored_calibration(SensorInfo& info);

struct IdlePower {
  double watts = 0, standard_error = 0;
};
/// Returns the value stored for the sensor's GPU and driver; nullopt if there is none.
std::optional<IdlePower> calibrated_idle_power(const SensorInfo& info);

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
