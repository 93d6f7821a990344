// Two-dimensional convolution of an image with a FILTER_WIDTH x FILTER_HEIGHT filter, for OpenCL and CUDA:
//   out[y][x] = sum over j, i of in[y + j][x + i] * filter[j][i]
// The input has a border of FILTER - 1 to the right and below. What can be tuned:
//   block_size_x, block_size_y   threads of a block
//   tile_size_x                  outputs of a thread along a row, one block width apart
//   tile_size_y                  outputs of a thread along a column, side by side: an input that was read serves all of them
//   use_shmem                    the block's piece of the input goes through local memory
//   use_padding                  its rows are lengthened so that the rows of a warp use different banks
//   read_only                    the input is read through the read-only cache
#include "portable.h"

#define PIECE_X (block_size_x * tile_size_x + FILTER_WIDTH - 1)
#define PIECE_Y (block_size_y * tile_size_y + FILTER_HEIGHT - 1)
#define INPUT_X (WIDTH + FILTER_WIDTH - 1)
#define INPUT_Y (HEIGHT + FILTER_HEIGHT - 1)

// Rows of a warp lie tile_size_y rows of the piece apart and should start 16 banks from each other (blocks with
// padding are 16 threads wide, or an odd multiple of it).
#if use_padding == 1
#define BANKS_APART (tile_size_y == 2 || tile_size_y == 4 ? 16 / tile_size_y : 16)
#define STRIDE (PIECE_X + (BANKS_APART + 32 - PIECE_X % 32) % 32)
#else
#define STRIDE PIECE_X
#endif

#if read_only == 1
#define IN(i) READ_ONLY(&in[i])
#else
#define IN(i) in[i]
#endif

KERNEL(block_size_x, block_size_y, 1)
convolution(GLOBAL float* RESTRICT out, GLOBAL const float* RESTRICT in, CONSTANT float* RESTRICT filter) {
  const int first_x = GROUP(0) * block_size_x * tile_size_x;
  const int first_y = GROUP(1) * block_size_y * tile_size_y;
#if use_shmem == 1
  LOCAL float piece[PIECE_Y * STRIDE];
  for (int y = THREAD(1); y < PIECE_Y; y += block_size_y)
    for (int x = THREAD(0); x < PIECE_X; x += block_size_x)
      if (first_x + x < INPUT_X && first_y + y < INPUT_Y)
        piece[y * STRIDE + x] = IN((first_y + y) * INPUT_X + first_x + x);
  BARRIER();
#define READ(y, x) piece[(THREAD(1) * tile_size_y + (y)) * STRIDE + THREAD(0) + (x)]
#else
  // threads beyond the edge read the last column or row: nobody looks at what they compute
#define READ(y, x)                                                                \
  IN(min(first_y + THREAD(1) * tile_size_y + (y), INPUT_Y - 1) * INPUT_X +        \
     min(first_x + THREAD(0) + (x), INPUT_X - 1))
#endif

  float sum[tile_size_y][tile_size_x];
  UNROLL for (int ty = 0; ty < tile_size_y; ++ty)
    UNROLL for (int tx = 0; tx < tile_size_x; ++tx) sum[ty][tx] = 0.0f;

  UNROLL_BY(1) for (int i = 0; i < FILTER_WIDTH; ++i) {
    float weight[FILTER_HEIGHT];
    UNROLL for (int j = 0; j < FILTER_HEIGHT; ++j) weight[j] = filter[j * FILTER_WIDTH + i];
    UNROLL for (int y = 0; y < FILTER_HEIGHT + tile_size_y - 1; ++y)
      UNROLL for (int tx = 0; tx < tile_size_x; ++tx) {
        const float value = READ(y, tx * block_size_x + i);
        UNROLL for (int ty = 0; ty < tile_size_y; ++ty)
          if (y - ty >= 0 && y - ty < FILTER_HEIGHT) sum[ty][tx] += value * weight[y - ty];
      }
  }

  UNROLL for (int ty = 0; ty < tile_size_y; ++ty)
    UNROLL for (int tx = 0; tx < tile_size_x; ++tx) {
      const int x = first_x + THREAD(0) + tx * block_size_x, y = first_y + THREAD(1) * tile_size_y + ty;
      if (x < WIDTH && y < HEIGHT) out[y * WIDTH + x] = sum[ty][tx];
    }
}
