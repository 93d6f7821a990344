// How far another clock is ahead of the host's.
#pragma once

#include <cmath>

#include "base/clock.hpp"

namespace ergotune {

/// s, from the least disturbed of a few looks: a process may lose the processor between reading one clock and the
/// other, and every reading would be misplaced by that much.
template <class Clock>
double ahead_of_host(Clock clock) {
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
