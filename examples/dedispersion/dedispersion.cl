// Dedispersion in the time domain, for OpenCL and CUDA: the samples of all channels are summed, each delayed as a
// dispersion measure (DM) says, for many DMs:
//   out[dm][t] = sum over c of in[c][t + floor(delays[c] * dm * DM_STEP)]
// Samples have 8 bits, their sums are whole numbers. What can be tuned:
//   block_size_x, block_size_y     threads of a block: in time, in DM
//   tile_size_x, tile_size_y       outputs of a thread
//   tile_stride_x, tile_stride_y   1: a thread's outputs lie a block's width apart, 0: side by side
//   USE_TEXTURE_MEM                1: samples come through the read-only cache, what textures were for; 0: as any others (CUDA)
#include "portable.h"

#if tile_stride_x == 1
#define SAMPLE(i) (GROUP(0) * (block_size_x * tile_size_x) + THREAD(0) + (i) * block_size_x)
#else
#define SAMPLE(i) ((GROUP(0) * block_size_x + THREAD(0)) * tile_size_x + (i))
#endif
#if tile_stride_y == 1
#define DM(j) (GROUP(1) * (block_size_y * tile_size_y) + THREAD(1) + (j) * block_size_y)
#else
#define DM(j) ((GROUP(1) * block_size_y + THREAD(1)) * tile_size_y + (j))
#endif

// floor(x) for 0 <= x < 2^22. On NVIDIA an addition that rounds down leaves it in the low bits of the sum: conversions
// run at a quarter of the speed of additions.
#if defined(__OPENCL_VERSION__) || defined(__HIP__)
#define FLOOR(x) ((int)(x))
#define UNROLLED 2
#else
#define UNROLLED 8
#define FLOOR(x) (__float_as_int(__fadd_rd((x), 8388608.0f)) - 0x4B000000)
#endif

#ifndef USE_TEXTURE_MEM
#define USE_TEXTURE_MEM 1
#endif
#if USE_TEXTURE_MEM == 1
#define SAMPLES_IN GLOBAL const unsigned char* RESTRICT
#define READ(p) READ_ONLY(p)
#else
#define SAMPLES_IN GLOBAL const unsigned char*  // might be written to meanwhile, as far as the compiler knows
#define READ(p) (*(p))
#endif

KERNEL(block_size_x, block_size_y, 1)
dedispersion(SAMPLES_IN in, GLOBAL float* RESTRICT out, CONSTANT float* RESTRICT delays) {
  // Threads beyond the edge repeat what the last one does, and write nothing.
  int sample[tile_size_x];
  float dm[tile_size_y];
  int sum[tile_size_y][tile_size_x];
  UNROLL for (int i = 0; i < tile_size_x; ++i) sample[i] = min(SAMPLE(i), SAMPLES - 1);
  UNROLL for (int j = 0; j < tile_size_y; ++j) dm[j] = (float)min(DM(j), DMS - 1) * (float)DM_STEP;
  UNROLL for (int j = 0; j < tile_size_y; ++j) UNROLL for (int i = 0; i < tile_size_x; ++i) sum[j][i] = 0;

  UNROLL_BY(UNROLLED) for (int c = 0; c < CHANNELS; ++c) {
    GLOBAL const unsigned char* row = in + c * (SAMPLES + MAX_SHIFT);
    const float delay = delays[c];
    UNROLL for (int j = 0; j < tile_size_y; ++j) {
      const int shift = FLOOR(delay * dm[j]);
      UNROLL for (int i = 0; i < tile_size_x; ++i) sum[j][i] += READ(&row[sample[i] + shift]);
    }
  }

  UNROLL for (int j = 0; j < tile_size_y; ++j)
    UNROLL for (int i = 0; i < tile_size_x; ++i)
      if (SAMPLE(i) < SAMPLES && DM(j) < DMS) out[DM(j) * SAMPLES + SAMPLE(i)] = (float)sum[j][i];
}
