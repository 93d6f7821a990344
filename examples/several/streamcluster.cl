/* What opening a centre would save: for each of SC_N points of SC_DIM coordinates (coordinate by coordinate) the cost of
   going over from its centre, where that is less. */
#include "portable.h"

KERNEL streamcluster(GLOBAL const float* points, GLOBAL const float* cost, GLOBAL float* gain) {
  const int i = GLOBAL_X;
  if (i >= SC_N) return;
  float distance = 0;
  for (int d = 0; d < SC_DIM; ++d) {
    const float difference = points[d * SC_N + i] - points[d * SC_N];
    distance += difference * difference;
  }
  gain[i] = distance < cost[i] ? cost[i] - distance : 0.0f;
}
