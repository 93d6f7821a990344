// One output per thread and nothing clever: what dedispersion.cl is verified against.
#include "portable.h"

KERNEL(32, 4, 1)
dedispersion_reference(GLOBAL const unsigned char* in, GLOBAL float* out, CONSTANT float* delays) {
  const int t = GROUP(0) * 32 + THREAD(0), d = GROUP(1) * 4 + THREAD(1);
  if (t >= SAMPLES || d >= DMS) return;
  const float dm = (float)d * (float)DM_STEP;
  float sum = 0.0f;
  for (int c = 0; c < CHANNELS; ++c) sum += in[c * (SAMPLES + MAX_SHIFT) + t + (int)(delays[c] * dm)];
  out[d * SAMPLES + t] = sum;
}
