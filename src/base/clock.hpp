// Host time. All times on a common axis (launches, sensor readings) come from host_seconds().
#pragma once

#include <string>

namespace ergotune {

/// Seconds of CLOCK_MONOTONIC: a common axis for launches and sensor readings within one boot of a machine.
double host_seconds();
/// Seconds since the Unix epoch (CLOCK_REALTIME).
double wall_seconds();
/// Formats a time in s since the Unix epoch as "2026-11-20T22:41:07Z".
std::string iso_time(double seconds_since_epoch);

}  // namespace ergotune
