// Delay and bandpass correction of a radio telescope, for OpenCL and CUDA: samples of two polarisations (complex numbers) are
// multiplied by their channel's weight and turned by a phase that grows with the channel and with a delay that changes
// linearly in time; on the way time and channel are exchanged:
//   out[s][c][t] = in[s][t][c] * weights[c] * exp(-2 pi i c CHANNEL_WIDTH * (delays[s].x + t * delays[s].y))
// Tuned: block_size_x, block_size_y; a block turns a tile of that shape; padding 1: a column more in local memory, so that
// the tile's columns lie in different banks.
#include "portable.h"

KERNEL(block_size_x, block_size_y, 1)
bandpass(GLOBAL const float4* RESTRICT in, GLOBAL const float* RESTRICT weights, GLOBAL const float2* RESTRICT delays,
         GLOBAL float4* RESTRICT out) {
  LOCAL float4 tile[block_size_y][block_size_x + padding];  // times by channels
  const int first_c = GROUP(0) * block_size_x, first_t = GROUP(1) * block_size_y, s = GROUP(2);
  const int c = first_c + THREAD(0), t = first_t + THREAD(1);
  if (c < CHANNELS && t < SAMPLES) {
    const float4 x = in[(s * SAMPLES + t) * CHANNELS + c];
    const float2 delay = delays[s];
    const float turns = -(float)c * (float)CHANNEL_WIDTH * (delay.x + t * delay.y);
    const float angle = 6.283185307f * (turns - rint(turns));
    const float2 turn = FLOAT2(FAST_COS(angle) * weights[c], FAST_SIN(angle) * weights[c]), zero = FLOAT2(0.0f, 0.0f);
    const float2 a = multiply_add_complex(FLOAT2(x.x, x.y), turn, zero), b = multiply_add_complex(FLOAT2(x.z, x.w), turn, zero);
    tile[THREAD(1)][THREAD(0)] = FLOAT4(a.x, a.y, b.x, b.y);
  }
  BARRIER();
  const int k = THREAD(1) * block_size_x + THREAD(0), time = k % block_size_y, channel = k / block_size_y;
  if (first_c + channel < CHANNELS && first_t + time < SAMPLES)
    out[(s * CHANNELS + first_c + channel) * SAMPLES + first_t + time] = tile[time][channel];
}
