/* C = A B of MM_N x MM_N, tiles of BLOCK x BLOCK in local memory; BLOCK divides MM_N. */
#include "portable.h"

KERNEL matrixmul(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* c) {
  LOCAL float tile_a[BLOCK][BLOCK];
  LOCAL float tile_b[BLOCK][BLOCK];
  const int tx = LOCAL_X, ty = LOCAL_Y;
  const int x = GROUP_X * BLOCK + tx, y = GROUP_Y * BLOCK + ty;
  float sum = 0;
  for (int t = 0; t < MM_N; t += BLOCK) {
    tile_a[ty][tx] = a[y * MM_N + t + tx];
    tile_b[ty][tx] = b[(t + ty) * MM_N + x];
    BARRIER;
    for (int i = 0; i < BLOCK; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    BARRIER;
  }
  c[y * MM_N + x] = sum;
}
