// Measures the time of each kernel in a workload of several kernels.
#pragma once

#include "ergotune/result.hpp"
#include "measure/timing/loaded_iteration.hpp"

namespace ergotune {

struct Problem;

/// Time in s for iterations with markers around each launch; a few iterations suffice.
inline constexpr double kKernelTimesSeconds = 0.5;

/// Adds "time.NAME" for each kernel (device time of its launches, including waiting for free SMs) and "overlap" (the
/// share of the busy time in which two or more kernels ran), from separate iterations that take at most `seconds`, but
/// at least three iterations.
void measure_kernel_times(Device& device, LoadedIteration& round, const Problem& problem, double seconds,
                          Measurement& result);

}  // namespace ergotune
