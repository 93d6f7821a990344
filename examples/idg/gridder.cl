// Image-domain gridding (Van der Tol, Veenboer, Offringa 2018), the gridder, for OpenCL and CUDA: each pixel of a subgrid is
// the sum of the visibilities near it, turned by the phase of its direction,
//   sum over t, c of vis[t][c] * exp(i (k_c (u_t l + v_t m + w_t n) - (u0 l + v0 m + w0 n))),
// then A1^H (...) A2 with the two stations' responses, times a taper. A block computes one subgrid. What can be tuned:
//   BLOCK_SIZE_X      threads of a block, over the pixels
//   UNROLL_PIXELS     pixels of a thread at once
//   NUM_BLOCKS        blocks per multiprocessor that the compiler has to leave registers for (CUDA)
//   USE_EXTRAPOLATE   1: channels are equidistant, so the next one's phasor is this one's times a constant: two sines and
//                     cosines per time instead of one per channel
//   TIME_BATCH        times that are in local memory at once
#include "idg.h"

KERNEL_AT_LEAST(BLOCK_SIZE_X, 1, 1, NUM_BLOCKS)
gridder(GLOBAL const float4* RESTRICT uvw, GLOBAL const float4* RESTRICT visibilities, GLOBAL const float* RESTRICT wavenumbers,
        GLOBAL const float4* RESTRICT places, GLOBAL const int2* RESTRICT stations, GLOBAL const float2* RESTRICT responses,
        GLOBAL const float* RESTRICT taper, GLOBAL float2* RESTRICT subgrids) {
  LOCAL float4 batch[TIME_BATCH * CHANNELS * 2];
  LOCAL float4 batch_uvw[TIME_BATCH];
  const int s = GROUP(0);
  const float4 place = places[s];
  const int2 pair = stations[s];
  const float k0 = wavenumbers[0], k_step = wavenumbers[1] - k0;

  for (int first = 0; first < PIXELS; first += BLOCK_SIZE_X * UNROLL_PIXELS) {
    float4 toward[UNROLL_PIXELS];
    float2 sum[UNROLL_PIXELS][4];
    UNROLL for (int i = 0; i < UNROLL_PIXELS; ++i) {
      toward[i] = direction(min(first + i * BLOCK_SIZE_X + THREAD(0), PIXELS - 1), place);
      UNROLL for (int p = 0; p < 4; ++p) sum[i][p] = FLOAT2(0.0f, 0.0f);
    }
    for (int t0 = 0; t0 < TIMES; t0 += TIME_BATCH) {
      BARRIER();
      for (int k = THREAD(0); k < TIME_BATCH * CHANNELS * 2; k += BLOCK_SIZE_X)
        batch[k] = visibilities[(s * TIMES + t0) * CHANNELS * 2 + k];
      for (int k = THREAD(0); k < TIME_BATCH; k += BLOCK_SIZE_X) batch_uvw[k] = uvw[s * TIMES + t0 + k];
      BARRIER();
      UNROLL_BY(1) for (int t = 0; t < TIME_BATCH; ++t) {
        const float4 at = batch_uvw[t];
        float length[UNROLL_PIXELS];
        float2 turn[UNROLL_PIXELS], step[UNROLL_PIXELS];
        UNROLL for (int i = 0; i < UNROLL_PIXELS; ++i) {
          length[i] = at.x * toward[i].x + at.y * toward[i].y + at.z * toward[i].z;
          turn[i] = phasor_of(k0 * length[i] - toward[i].w);
#if USE_EXTRAPOLATE == 1
          step[i] = phasor_of(k_step * length[i]);
#endif
        }
        UNROLL for (int c = 0; c < CHANNELS; ++c) {
          const float4 low = batch[(t * CHANNELS + c) * 2], high = batch[(t * CHANNELS + c) * 2 + 1];
          UNROLL for (int i = 0; i < UNROLL_PIXELS; ++i) {
#if USE_EXTRAPOLATE == 1
            if (c > 0) turn[i] = multiply_add_complex(turn[i], step[i], FLOAT2(0.0f, 0.0f));
#else
            if (c > 0) turn[i] = phasor_of((k0 + c * k_step) * length[i] - toward[i].w);
#endif
            sum[i][0] = multiply_add_complex(FLOAT2(low.x, low.y), turn[i], sum[i][0]);
            sum[i][1] = multiply_add_complex(FLOAT2(low.z, low.w), turn[i], sum[i][1]);
            sum[i][2] = multiply_add_complex(FLOAT2(high.x, high.y), turn[i], sum[i][2]);
            sum[i][3] = multiply_add_complex(FLOAT2(high.z, high.w), turn[i], sum[i][3]);
          }
        }
      }
    }
    UNROLL for (int i = 0; i < UNROLL_PIXELS; ++i) {
      const int pixel = first + i * BLOCK_SIZE_X + THREAD(0);
      if (pixel >= PIXELS) continue;
      Matrix value;
      UNROLL for (int p = 0; p < 4; ++p) value.p[p] = sum[i][p];
      value = product(adjoint(read_matrix(&responses[(pair.x * PIXELS + pixel) * 4])),
                      product(value, read_matrix(&responses[(pair.y * PIXELS + pixel) * 4])));
      UNROLL for (int p = 0; p < 4; ++p)
        subgrids[(s * 4 + p) * PIXELS + stored_at(pixel)] = FLOAT2(value.p[p].x * taper[pixel], value.p[p].y * taper[pixel]);
    }
  }
}
