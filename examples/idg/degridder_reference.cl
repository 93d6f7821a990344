// A visibility per thread, angles and sums in double precision: what degridder.cl is verified against.
#include "idg.h"

KERNEL(32, 1, 1)
degridder_reference(GLOBAL const float4* uvw, GLOBAL float2* visibilities, GLOBAL const float* wavenumbers,
                    GLOBAL const float4* places, GLOBAL const int2* stations, GLOBAL const float2* responses,
                    GLOBAL const float* taper, GLOBAL const float2* subgrids) {
  const int s = GROUP(1), item = GROUP(0) * 32 + THREAD(0), t = item / CHANNELS, c = item % CHANNELS;
  if (t >= TIMES) return;
  const float4 at = uvw[s * TIMES + t];
  double re[4] = {0, 0, 0, 0}, im[4] = {0, 0, 0, 0};
  for (int pixel = 0; pixel < PIXELS; ++pixel) {
    Matrix value;
    for (int p = 0; p < 4; ++p) value.p[p] = subgrids[(s * 4 + p) * PIXELS + stored_at(pixel)];
    value = product(read_matrix(&responses[(stations[s].x * PIXELS + pixel) * 4]),
                    product(value, adjoint(read_matrix(&responses[(stations[s].y * PIXELS + pixel) * 4]))));
    const float4 d = direction(pixel, places[s]);
    const double length = (double)at.x * d.x + (double)at.y * d.y + (double)at.z * d.z;
    const double phase = d.w - wavenumbers[c] * length, x = cos(phase), y = sin(phase);
    for (int p = 0; p < 4; ++p) {
      re[p] += taper[pixel] * (value.p[p].x * x - value.p[p].y * y);
      im[p] += taper[pixel] * (value.p[p].x * y + value.p[p].y * x);
    }
  }
  for (int p = 0; p < 4; ++p)
    visibilities[((s * TIMES + t) * CHANNELS + c) * 4 + p] = FLOAT2((float)(re[p] / PIXELS), (float)(im[p] / PIXELS));
}
