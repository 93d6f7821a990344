// Measures the offset of another clock from the host's clock.
#pragma once

#include <cmath>

#include "base/clock.hpp"

namespace ergotune {

/// Returns the offset in s from the least disturbed of five comparisons. A process may be preempted between reading the
/// two clocks, which would shift every reading by that time.
template <class Clock>
double offset_from_host(Clock clock) {
  double offset = 0, narrowest = INFINITY;
  for (int look = 0; look < 5; ++look) {
    const double before = host_seconds(), there = clock(), after = host_seconds();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    offset = there - 0.5 * (before + after);
  }
  return offset;
}

}  // namespace ergotune
