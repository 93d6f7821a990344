// The idle power of a GPU, from its calibration.
#pragma once

#include <optional>

#include "power/sensors/sensor.hpp"

namespace ergotune {

struct IdlePower {
  double watts = 0, standard_error = 0;
};
/// Returns the value stored for the sensor's GPU and driver; nullopt if there is none.
std::optional<IdlePower> calibrated_idle_power(const SensorInfo& info);

}  // namespace ergotune
