// Step after step of the plain formula, over a block's 16 x 16 cells and all that they depend on, nothing left out and nothing
// tuned: what hotspot.cl is verified against.
#include "portable.h"

#define STEPS temporal_tiling_factor
#define SIDE (16 + 2 * STEPS)

KERNEL(16, 16, 1)
hotspot_reference(GLOBAL const float* power, GLOBAL const float* temperature, GLOBAL float* result) {
  LOCAL float now[SIDE][SIDE], next[SIDE][SIDE];
  const int first_x = GROUP(0) * 16 - STEPS, first_y = GROUP(1) * 16 - STEPS;
  for (int step = 0; step <= STEPS; ++step) {
    for (int y = THREAD(1); y < SIDE; y += 16)
      for (int x = THREAD(0); x < SIDE; x += 16) {
        const int row = first_y + y, column = first_x + x;
        float t = AMBIENT;  // outside of the chip
        if (row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH) {
          const int cell = row * WIDTH + column;
          if (step == 0) {
            t = temperature[cell];
          } else {
            t = now[y][x];
            if (y > 0 && y < SIDE - 1 && x > 0 && x < SIDE - 1)  // the rim goes bad, by one cell a step
              t += (float)STEP_OVER_CAP * (power[cell] + (now[y - 1][x] + now[y + 1][x] - 2.0f * t) / (float)RY +
                                           (now[y][x - 1] + now[y][x + 1] - 2.0f * t) / (float)RX + ((float)AMBIENT - t) / (float)RZ);
          }
          if (step == STEPS && y >= STEPS && y < STEPS + 16 && x >= STEPS && x < STEPS + 16) result[cell] = t;
        }
        next[y][x] = t;
      }
    BARRIER();
    for (int y = THREAD(1); y < SIDE; y += 16)
      for (int x = THREAD(0); x < SIDE; x += 16) now[y][x] = next[y][x];
    BARRIER();
  }
}
