// Host time. Everything that is put on one time axis (launches, sensor readings) uses host_seconds().
#pragma once

#include <string>

namespace ergotune {

/// Seconds of CLOCK_MONOTONIC: one axis for launches and sensor readings within one boot of one machine.
double host_seconds();
/// Seconds since the Unix epoch (CLOCK_REALTIME).
double wall_seconds();
/// "2026-11-20T22:41:07Z" for a time in seconds since the epoch.
std::string iso_time(double seconds_since_epoch);

}  // namespace ergotune
