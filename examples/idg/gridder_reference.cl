// A pixel per thread, angles and sums in double precision: what gridder.cl is verified against.
#include "idg.h"

KERNEL(32, 1, 1)
gridder_reference(GLOBAL const float4* uvw, GLOBAL const float2* visibilities, GLOBAL const float* wavenumbers,
                  GLOBAL const float4* places, GLOBAL const int2* stations, GLOBAL const float2* responses,
                  GLOBAL const float* taper, GLOBAL float2* subgrids) {
  const int s = GROUP(1), pixel = GROUP(0) * 32 + THREAD(0);
  if (pixel >= PIXELS) return;
  const float4 d = direction(pixel, places[s]);
  double re[4] = {0, 0, 0, 0}, im[4] = {0, 0, 0, 0};
  for (int t = 0; t < TIMES; ++t) {
    const float4 at = uvw[s * TIMES + t];
    const double length = (double)at.x * d.x + (double)at.y * d.y + (double)at.z * d.z;
    for (int c = 0; c < CHANNELS; ++c) {
      const double phase = wavenumbers[c] * length - d.w, x = cos(phase), y = sin(phase);
      for (int p = 0; p < 4; ++p) {
        const float2 v = visibilities[((s * TIMES + t) * CHANNELS + c) * 4 + p];
        re[p] += v.x * x - v.y * y;
        im[p] += v.x * y + v.y * x;
      }
    }
  }
  Matrix value;
  for (int p = 0; p < 4; ++p) value.p[p] = FLOAT2((float)re[p] * taper[pixel], (float)im[p] * taper[pixel]);
  value = product(adjoint(read_matrix(&responses[(stations[s].x * PIXELS + pixel) * 4])),
                  product(value, read_matrix(&responses[(stations[s].y * PIXELS + pixel) * 4])));
  for (int p = 0; p < 4; ++p) subgrids[(s * 4 + p) * PIXELS + stored_at(pixel)] = value.p[p];
}
