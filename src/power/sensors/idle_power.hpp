// What a GPU uses when nothing runs, as its calibration found it.
#pragma once

#include <optional>

#include "power/sensors/sensor.hpp"

namespace ergotune {

struct IdlePower {
  double watts = 0, standard_error = 0;
};
/// From the stored calibration of the sensor's GPU under its driver; nullopt where there is none.
std::optional<IdlePower> calibrated_idle_power(const SensorInfo& info);

}  // namespace ergotune
