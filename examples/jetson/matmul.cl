// Matrix product C = A B, square tiles through local memory, one element per thread, for OpenCL and CUDA. Tuned: the tile,
// which is the block.
#include "portable.h"

KERNEL(block_size, block_size, 1)
matmul(GLOBAL const float* RESTRICT a, GLOBAL const float* RESTRICT b, GLOBAL float* RESTRICT c) {
  LOCAL float tile_a[block_size][block_size], tile_b[block_size][block_size];
  const int x = THREAD(0), y = THREAD(1), column = GROUP(0) * block_size + x, row = GROUP(1) * block_size + y;
  float sum = 0.0f;
  for (int k0 = 0; k0 < SIZE; k0 += block_size) {
    tile_a[y][x] = row < SIZE && k0 + x < SIZE ? a[row * SIZE + k0 + x] : 0.0f;
    tile_b[y][x] = k0 + y < SIZE && column < SIZE ? b[(k0 + y) * SIZE + column] : 0.0f;
    BARRIER();
    UNROLL for (int k = 0; k < block_size; ++k) sum += tile_a[y][k] * tile_b[k][x];
    BARRIER();
  }
  if (row < SIZE && column < SIZE) c[row * SIZE + column] = sum;
}
