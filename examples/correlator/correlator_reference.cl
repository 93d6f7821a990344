// A baseline, channel and pair of polarisations per thread, summed in double precision: what correlator.cl is verified
// against.
#include "portable.h"

KERNEL(4, 8, 1) correlator_reference(GLOBAL const float2* in, GLOBAL float2* out) {
  const int p = THREAD(0) / 2, q = THREAD(0) % 2, baseline = GROUP(1) * 8 + THREAD(1), channel = GROUP(2);
  if (baseline >= STATIONS * (STATIONS + 1) / 2 || (CHANNELS > 1 && channel == 0)) return;
  int j = 0;
  while ((j + 1) * (j + 2) / 2 <= baseline) ++j;
  const int i = baseline - j * (j + 1) / 2;
  double re = 0, im = 0;
  for (int t = 0; t < SAMPLES; ++t) {
    const float2 a = in[((i * CHANNELS + channel) * SAMPLES + t) * 2 + p];
    const float2 b = in[((j * CHANNELS + channel) * SAMPLES + t) * 2 + q];
    re += (double)a.x * b.x + (double)a.y * b.y;
    im += (double)a.y * b.x - (double)a.x * b.y;
  }
  out[(baseline * CHANNELS + channel) * 4 + p * 2 + q] = FLOAT2((float)re, (float)im);
}
