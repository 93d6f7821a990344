// HotSpot: the temperature of a chip, stepped in time with temporal tiling, for OpenCL and CUDA. A step is
//   T' = T + STEP_OVER_CAP * (P + (N + S - 2 T) / RY + (E + W - 2 T) / RX + (AMBIENT - T) / RZ)
// for every cell with power P and neighbours N, S, E, W; outside of the chip it is AMBIENT. One launch computes
// temporal_tiling_factor steps: a block reads its tile with a border of as many cells and computes ever smaller pieces
// of it in local memory, so that one trip through global memory serves several steps. What can be tuned:
//   block_size_x, block_size_y   threads of a block
//   tile_size_x, tile_size_y     cells of a thread
//   temporal_tiling_factor       steps of a launch
//   loop_unroll_factor_t         of which so many are unrolled
//   sh_power                     1: the power map goes through local memory as well
#include "portable.h"

#define STEPS temporal_tiling_factor
#define PIECE_X (block_size_x * tile_size_x + 2 * STEPS)
#define PIECE_Y (block_size_y * tile_size_y + 2 * STEPS)

KERNEL(block_size_x, block_size_y, 1)
hotspot(GLOBAL const float* RESTRICT power, GLOBAL const float* RESTRICT temperature, GLOBAL float* RESTRICT result) {
  LOCAL float piece[2][PIECE_Y][PIECE_X];
#if sh_power == 1
  LOCAL float local_power[PIECE_Y][PIECE_X];
#define POWER(y, x) local_power[y][x]
#else
#define POWER(y, x) power[(first_y + (y)) * WIDTH + first_x + (x)]
#endif
  const int first_x = GROUP(0) * (block_size_x * tile_size_x) - STEPS;
  const int first_y = GROUP(1) * (block_size_y * tile_size_y) - STEPS;
#define INSIDE(y, x) \
  (first_y + (y) >= 0 && first_y + (y) < HEIGHT && first_x + (x) >= 0 && first_x + (x) < WIDTH)

  for (int y = THREAD(1); y < PIECE_Y; y += block_size_y)
    for (int x = THREAD(0); x < PIECE_X; x += block_size_x) {
      const int inside = INSIDE(y, x), i = (first_y + y) * WIDTH + first_x + x;
      piece[0][y][x] = inside ? temperature[i] : (float)AMBIENT;
      piece[1][y][x] = (float)AMBIENT;  // what lies outside stays so
#if sh_power == 1
      local_power[y][x] = inside ? power[i] : 0.0f;
#endif
    }
  BARRIER();

  UNROLL_BY(loop_unroll_factor_t) for (int step = 1; step <= STEPS; ++step) {
    const int from = (step - 1) % 2;
    for (int y = step + THREAD(1); y < PIECE_Y - step; y += block_size_y)
      for (int x = step + THREAD(0); x < PIECE_X - step; x += block_size_x) {
        if (!INSIDE(y, x)) continue;
        const float t = piece[from][y][x];
        const float rows = piece[from][y - 1][x] + piece[from][y + 1][x] - 2.0f * t;
        const float columns = piece[from][y][x - 1] + piece[from][y][x + 1] - 2.0f * t;
        const float next = t + (float)STEP_OVER_CAP * (POWER(y, x) + rows * (float)(1.0 / RY) +
                                                       columns * (float)(1.0 / RX) + ((float)AMBIENT - t) * (float)(1.0 / RZ));
        if (step < STEPS)
          piece[1 - from][y][x] = next;
        else
          result[(first_y + y) * WIDTH + first_x + x] = next;
      }
    BARRIER();
  }
}
