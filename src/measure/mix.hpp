// What the kernels of a round take each, as they run together.
#pragma once

#include "ergotune/result.hpp"
#include "measure/timing/loaded_iteration.hpp"

namespace ergotune {

/// s that rounds with markers around every launch may take: a handful says what a kernel's share is.
inline constexpr double kMixSeconds = 0.5;

/// Adds "time.NAME" of each kernel (device time of its launches, waiting for room on the device among it) and "overlap"
/// (the share of the time in which any ran that two or more ran), from a few rounds of their own, for `seconds` at most
/// but three rounds at least.
void measure_mix(Device& device, LoadedIteration& round, const Problem& problem, double seconds, Measurement& result);

}  // namespace ergotune
