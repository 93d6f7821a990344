/* A round of four.toml, kernel after kernel. */
#include <string.h>

#include "hotspot_reference.c"
#include "lud_reference.c"
#include "particlefilter_reference.c"
#include "streamcluster_reference.c"

void four_reference(const float* points, const float* cost, float* gain, const float* position, const float* cumulative,
                    float* resampled, const float* a0, float* a, float* temperature, const float* power, float* next) {
  streamcluster_reference(points, cost, gain);
  particlefilter_reference(position, cumulative, resampled);
  lud_reference(a0, a);
  for (int t = 0; t < HS_STEPS; ++t) { /* the two names stand for each other's buffer after every step */
    const size_t bytes = sizeof(float) * HS_N * HS_N;
    float* before = malloc(bytes);
    hotspot_reference(temperature, power, next);
    memcpy(before, temperature, bytes);
    memcpy(temperature, next, bytes);
    memcpy(next, before, bytes);
    free(before);
  }
}
