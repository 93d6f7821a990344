// STEPS plain steps over the whole chip: what hotspot.cl is verified against.
#include <stdlib.h>
#include <string.h>

static float at(const float* t, long y, long x) {
  return y < 0 || y >= HEIGHT || x < 0 || x >= WIDTH ? AMBIENT : t[y * WIDTH + x];
}

void hotspot_reference(const float* power, const float* temperature, float* result) {
  const size_t bytes = sizeof(float) * WIDTH * HEIGHT;
  float* t = malloc(bytes);
  memcpy(t, temperature, bytes);
  for (int step = 0; step < STEPS; ++step) {
    for (long y = 0; y < HEIGHT; ++y)
      for (long x = 0; x < WIDTH; ++x) {
        const double here = at(t, y, x);
        result[y * WIDTH + x] = here + STEP_OVER_CAP * (power[y * WIDTH + x] +
                                                        (at(t, y - 1, x) + at(t, y + 1, x) - 2 * here) / RY +
                                                        (at(t, y, x - 1) + at(t, y, x + 1) - 2 * here) / RX +
                                                        (AMBIENT - here) / RZ);
      }
    memcpy(t, result, bytes);
  }
  free(t);
}
