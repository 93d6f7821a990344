// What bandpass.cl is verified against.
#include <math.h>

void bandpass_reference(const float* in, const float* weights, const float* delays, float* out) {
  for (long s = 0; s < STATIONS; ++s)
    for (long t = 0; t < SAMPLES; ++t)
      for (long c = 0; c < CHANNELS; ++c) {
        const double angle = -2 * 3.14159265358979323846 * c * CHANNEL_WIDTH * (delays[2 * s] + t * delays[2 * s + 1]);
        const double re = cos(angle) * weights[c], im = sin(angle) * weights[c];
        const float* x = in + ((s * SAMPLES + t) * CHANNELS + c) * 4;
        float* y = out + ((s * CHANNELS + c) * SAMPLES + t) * 4;
        for (int p = 0; p < 4; p += 2) {
          y[p] = x[p] * re - x[p + 1] * im;
          y[p + 1] = x[p] * im + x[p + 1] * re;
        }
      }
}
