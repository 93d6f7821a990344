/* Resampling of a particle filter: for each of PF_N equally spaced numbers u the first particle whose cumulative weight
   reaches it, searched from the first on, and the position that it stands for. */
#include "portable.h"

KERNEL particlefilter(GLOBAL const float* position, GLOBAL const float* cumulative, GLOBAL float* resampled) {
  const int i = GLOBAL_X;
  if (i >= PF_N) return;
  const float u = (i + 0.5f) / PF_N;
  int found = 0;
  while (found < PF_N - 1 && cumulative[found] < u) ++found;
  resampled[i] = position[found];
}
