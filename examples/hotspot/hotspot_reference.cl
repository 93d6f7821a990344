// A cell per thread, which computes all that its last step depends on by itself, step after step in a window of its own: what
// hotspot.cl is verified against.
#include "portable.h"

#define STEPS temporal_tiling_factor
#define SIDE (2 * STEPS + 1)

KERNEL(16, 8, 1)
hotspot_reference(GLOBAL const float* power, GLOBAL const float* temperature, GLOBAL float* result) {
  const int x = GROUP(0) * 16 + THREAD(0), y = GROUP(1) * 8 + THREAD(1);
  if (x >= WIDTH || y >= HEIGHT) return;
  float window[SIDE][SIDE];
  for (int j = 0; j < SIDE; ++j)
    for (int i = 0; i < SIDE; ++i) {
      const int row = y + j - STEPS, column = x + i - STEPS;
      const int inside = row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH;
      window[j][i] = inside ? temperature[row * WIDTH + column] : (float)AMBIENT;
    }
  for (int step = 1; step <= STEPS; ++step) {
    float above[SIDE];  // the row above, as it was before this step
    for (int i = 0; i < SIDE; ++i) above[i] = window[step - 1][i];
    for (int j = step; j < SIDE - step; ++j) {
      float left = window[j][step - 1];
      for (int i = step; i < SIDE - step; ++i) {
        const int row = y + j - STEPS, column = x + i - STEPS;
        const float t = window[j][i];
        if (row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH)
          window[j][i] = t + (float)STEP_OVER_CAP * (power[row * WIDTH + column] + (above[i] + window[j + 1][i] - 2.0f * t) / (float)RY +
                                                     (left + window[j][i + 1] - 2.0f * t) / (float)RX + ((float)AMBIENT - t) / (float)RZ);
        above[i] = left = t;
      }
    }
  }
  result[y * WIDTH + x] = window[STEPS][STEPS];
}
