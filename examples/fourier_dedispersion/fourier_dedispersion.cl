// Dedispersion in the Fourier domain (Bassa, Romein, Veenboer, Van der Vlugt, Wijnholds 2022), for OpenCL and CUDA: a delay
// is a rotation of each frequency's phase. From the channels' spectra X, k = 0 .. FREQUENCIES - 1 of a transform over
// 2 FREQUENCIES samples,
//   out[dm][k] = sum over c of X[c][k] * exp(2 pi i k / (2 FREQUENCIES) * delays[c] * dm * DM_STEP)
// What can be tuned:
//   block_size_x, block_size_y   threads of a block: in frequency, in DM
//   dms_per_thread               DMs of a thread, neighbours
//   NCHAN_BATCH_THREAD           channels that are unrolled, and in local memory at once
//   NFREQ_BATCH_GRID             frequencies that a thread takes one after the other
//   NDM_BATCH_GRID               groups of DMs that a thread takes one after the other
//   USE_SHARED_MEMORY            1: the threads of a block read spectra through local memory
//   USE_EXTRAPOLATE              1: DMs are equidistant, so the next one's rotation is this one's times a constant: two sines and
//                                cosines for all of a thread's DMs instead of one each
#include "portable.h"

#define BATCH NCHAN_BATCH_THREAD

// exp(2 pi i turns)
FUNCTION float2 rotation(float turns) {
  const float angle = 6.283185307f * (turns - rint(turns));
  return FLOAT2(FAST_COS(angle), FAST_SIN(angle));
}

KERNEL(block_size_x, block_size_y, 1)
fourier_dedispersion(GLOBAL const float2* RESTRICT spectra, GLOBAL float2* RESTRICT out, CONSTANT float* RESTRICT delays) {
#if USE_SHARED_MEMORY == 1
  LOCAL float2 shared[BATCH][block_size_x];
#endif
  for (int f = 0; f < NFREQ_BATCH_GRID; ++f)
    for (int g = 0; g < NDM_BATCH_GRID; ++g) {
      const int k = (GROUP(0) * NFREQ_BATCH_GRID + f) * block_size_x + THREAD(0);
      const int first_dm = ((GROUP(1) * NDM_BATCH_GRID + g) * block_size_y + THREAD(1)) * dms_per_thread;
      const float scale = k * (0.5f * (float)DM_STEP / FREQUENCIES);
      float2 sum[dms_per_thread];
      UNROLL for (int d = 0; d < dms_per_thread; ++d) sum[d] = FLOAT2(0.0f, 0.0f);

      for (int first = 0; first < CHANNELS; first += BATCH) {
#if USE_SHARED_MEMORY == 1
        for (int c = THREAD(1); c < BATCH; c += block_size_y)
          shared[c][THREAD(0)] = spectra[(first + c) * FREQUENCIES + k];
        BARRIER();
#endif
        UNROLL for (int c = 0; c < BATCH; ++c) {
#if USE_SHARED_MEMORY == 1
          const float2 x = shared[c][THREAD(0)];
#else
          const float2 x = spectra[(first + c) * FREQUENCIES + k];
#endif
          const float turns = scale * delays[first + c];  // for a step in DM
#if USE_EXTRAPOLATE == 1
          float2 phasor = rotation(turns * first_dm);
          const float2 step = rotation(turns);
          UNROLL for (int d = 0; d < dms_per_thread; ++d) {
            sum[d] = multiply_add_complex(x, phasor, sum[d]);
            phasor = multiply_add_complex(phasor, step, FLOAT2(0.0f, 0.0f));
          }
#else
          UNROLL for (int d = 0; d < dms_per_thread; ++d)
            sum[d] = multiply_add_complex(x, rotation(turns * (first_dm + d)), sum[d]);
#endif
        }
#if USE_SHARED_MEMORY == 1
        BARRIER();
#endif
      }
      UNROLL for (int d = 0; d < dms_per_thread; ++d) out[(first_dm + d) * FREQUENCIES + k] = sum[d];
    }
}
