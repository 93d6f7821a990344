// One output per thread, angles and sums in double precision: what fourier_dedispersion.cl is verified against.
#include "portable.h"

KERNEL(32, 4, 1)
fourier_dedispersion_reference(GLOBAL const float2* spectra, GLOBAL float2* out, CONSTANT float* delays) {
  const int k = GROUP(0) * 32 + THREAD(0), dm = GROUP(1) * 4 + THREAD(1);
  double re = 0, im = 0;
  for (int c = 0; c < CHANNELS; ++c) {
    const double angle = 2 * 3.14159265358979323846 * (0.5 * k / FREQUENCIES) * delays[c] * dm * DM_STEP;
    const float2 x = spectra[c * FREQUENCIES + k];
    re += x.x * cos(angle) - x.y * sin(angle);
    im += x.x * sin(angle) + x.y * cos(angle);
  }
  out[dm * FREQUENCIES + k] = FLOAT2((float)re, (float)im);
}
