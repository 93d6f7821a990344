// Names and time stamps that exports share.
#pragma once

#include <string>

#include "ergotune/result.hpp"

namespace ergotune {

/// Kernel Tuner's name of one of our quantities: core_clock -> core_freq, energy -> nvml_energy or ps_energy
/// by its sensor. Values under it are in the units that cache_scale() knows.
std::string cache_name(const std::string& name, const Quantity& quantity);

/// "2023-12-21 10:44:42.236642+00:00"
std::string cache_time_stamp(double seconds_since_epoch);

}  // namespace ergotune
