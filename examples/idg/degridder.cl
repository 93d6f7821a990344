// Image-domain gridding (Van der Tol, Veenboer, Offringa 2018), the degridder, for OpenCL and CUDA: the adjoint of gridder.cl.
// Pixels are tapered and get the stations' responses, A1 P A2^H; each visibility is then
//   1 / N^2 * sum over pixels of P * exp(-i (k_c (u_t l + v_t m + w_t n) - (u0 l + v0 m + w0 n))).
// A block computes one subgrid's visibilities. What can be tuned:
//   BLOCK_SIZE_X          threads of a block, over times and groups of channels
//   CHANNELS_PER_THREAD   neighbouring channels of a thread
//   NUM_BLOCKS            blocks per multiprocessor that the compiler has to leave registers for (CUDA)
//   USE_EXTRAPOLATE       1: from channel to channel a thread's phasor is multiplied by a constant
//   PIXEL_BATCH           pixels that are in local memory at once
#include "idg.h"

#define OWN CHANNELS_PER_THREAD
#define GROUPS (CHANNELS / OWN)
#define ITEMS (TIMES * GROUPS)

KERNEL_AT_LEAST(BLOCK_SIZE_X, 1, 1, NUM_BLOCKS)
degridder(GLOBAL const float4* RESTRICT uvw, GLOBAL float4* RESTRICT visibilities, GLOBAL const float* RESTRICT wavenumbers,
          GLOBAL const float4* RESTRICT places, GLOBAL const int2* RESTRICT stations, GLOBAL const float2* RESTRICT responses,
          GLOBAL const float* RESTRICT taper, GLOBAL const float2* RESTRICT subgrids) {
  LOCAL float4 low[PIXEL_BATCH], high[PIXEL_BATCH], toward[PIXEL_BATCH];
  const int s = GROUP(0);
  const float4 place = places[s];
  const int2 pair = stations[s];
  const float k_first = wavenumbers[0], k_step = wavenumbers[1] - k_first;

  for (int first = 0; first < ITEMS; first += BLOCK_SIZE_X) {
    const int item = min(first + THREAD(0), ITEMS - 1), t = item / GROUPS, c0 = item % GROUPS * OWN;
    const float4 at = uvw[s * TIMES + t];
    const float k0 = k_first + c0 * k_step;
    float2 sum[OWN][4];
    UNROLL for (int c = 0; c < OWN; ++c) UNROLL for (int p = 0; p < 4; ++p) sum[c][p] = FLOAT2(0.0f, 0.0f);

    for (int from = 0; from < PIXELS; from += PIXEL_BATCH) {
      BARRIER();
      for (int k = THREAD(0); k < PIXEL_BATCH && from + k < PIXELS; k += BLOCK_SIZE_X) {
        const int pixel = from + k;
        Matrix value;
        UNROLL for (int p = 0; p < 4; ++p) {
          const float2 x = subgrids[(s * 4 + p) * PIXELS + stored_at(pixel)];
          value.p[p] = FLOAT2(x.x * taper[pixel], x.y * taper[pixel]);
        }
        value = product(read_matrix(&responses[(pair.x * PIXELS + pixel) * 4]),
                        product(value, adjoint(read_matrix(&responses[(pair.y * PIXELS + pixel) * 4]))));
        low[k] = first_half(value);
        high[k] = second_half(value);
        toward[k] = direction(pixel, place);
      }
      BARRIER();
      const int here = min(PIXEL_BATCH, PIXELS - from);
      UNROLL_BY(2) for (int k = 0; k < here; ++k) {
        const float4 d = toward[k], a = low[k], b = high[k];
        const float length = at.x * d.x + at.y * d.y + at.z * d.z;
        float2 turn = phasor_of(d.w - k0 * length);
#if USE_EXTRAPOLATE == 1 && OWN > 1
        const float2 step = phasor_of(-k_step * length);
#endif
        UNROLL for (int c = 0; c < OWN; ++c) {
#if USE_EXTRAPOLATE == 1 && OWN > 1
          if (c > 0) turn = multiply_add_complex(turn, step, FLOAT2(0.0f, 0.0f));
#else
          if (c > 0) turn = phasor_of(d.w - (k0 + c * k_step) * length);
#endif
          sum[c][0] = multiply_add_complex(FLOAT2(a.x, a.y), turn, sum[c][0]);
          sum[c][1] = multiply_add_complex(FLOAT2(a.z, a.w), turn, sum[c][1]);
          sum[c][2] = multiply_add_complex(FLOAT2(b.x, b.y), turn, sum[c][2]);
          sum[c][3] = multiply_add_complex(FLOAT2(b.z, b.w), turn, sum[c][3]);
        }
      }
    }
    if (first + THREAD(0) >= ITEMS) continue;
    const float scale = 1.0f / PIXELS;
    UNROLL for (int c = 0; c < OWN; ++c) {
      const int k = ((s * TIMES + t) * CHANNELS + c0 + c) * 2;
      visibilities[k] = FLOAT4(sum[c][0].x * scale, sum[c][0].y * scale, sum[c][1].x * scale, sum[c][1].y * scale);
      visibilities[k + 1] = FLOAT4(sum[c][2].x * scale, sum[c][2].y * scale, sum[c][3].x * scale, sum[c][3].y * scale);
    }
  }
}
