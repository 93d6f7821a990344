// Stores the calibration of a GPU's sensors under one driver on disk, and applies it when sensors are opened.
#pragma once

#include <filesystem>
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

}  // namespace ergotune
