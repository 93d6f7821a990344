// Ray casting through a distance map, as a robot does to place itself, for OpenCL and CUDA: a ray steps forward by the distance to
// the nearest obstacle, which the map holds for every cell, until that is small or the ray leaves the map. Rays end after
// different numbers of steps. Positions are whole numbers of 1 / 65536 of a cell, so that every device agrees.
// Tuned: block_size; rays_per_thread, one after the other; interleaved 1: a thread's rays lie apart, 0: side by side.
#include "portable.h"

KERNEL(block_size, 1, 1)
distance_map(GLOBAL const unsigned char* RESTRICT map, GLOBAL const int* RESTRICT directions, GLOBAL int* RESTRICT lengths) {
  UNROLL_BY(1) for (int r = 0; r < rays_per_thread; ++r) {
#if interleaved == 1
    const int ray = (GROUP(0) * rays_per_thread + r) * block_size + THREAD(0);
#else
    const int ray = (GROUP(0) * block_size + THREAD(0)) * rays_per_thread + r;
#endif
    if (ray >= RAYS) continue;
    const int dx = directions[2 * ray], dy = directions[2 * ray + 1];
    int x = (SIDE / 2) << 16, y = (SIDE / 2) << 16, length = 0;
    for (int step = 0; step < MOST_STEPS; ++step) {
      if (x < 0 || y < 0 || x >= (SIDE << 16) || y >= (SIDE << 16)) break;
      const int distance = READ_ONLY(&map[(y >> 16) * SIDE + (x >> 16)]);
      if (distance < 1) break;
      x += distance * dx;
      y += distance * dy;
      length += distance;
    }
    lengths[ray] = length;
  }
}
