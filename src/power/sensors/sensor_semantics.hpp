// What calibration found about a sensor of one GPU under one driver, kept on disk and applied when it is
// opened.
#pragma once

#include <filesystem>
#include <string>

#include "power/sensors/sensor.hpp"

namespace ergotune {

/// $ERGOTUNE_DATA_DIR or $XDG_DATA_HOME/ergotune or ~/.local/share/ergotune, then "/calibration"; empty when
/// there is no home.
std::filesystem::path calibration_folder();
/// The file of a sensor's GPU: one JSON document with a member per sensor.
std::filesystem::path calibration_file(const SensorInfo& info);
/// "energy" for "nvml:0/energy": the sensor's name within its GPU; the id itself where it has no GPU.
std::string sensor_role(const SensorInfo& info);
/// Overwrites the semantics of `info` with what is stored for this GPU and driver; false when nothing is.
bool apply_stored_calibration(SensorInfo& info);

}  // namespace ergotune
