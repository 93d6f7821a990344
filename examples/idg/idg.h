// What gridder and degridder share. A subgrid is a small image of N x N pixels around one place of the uv plane, four
// polarisations (2 x 2 matrices) a pixel.
#include "portable.h"

#define PIXELS (N * N)
#define TWO_PI 6.283185307f

typedef struct {
  float2 p[4];
} Matrix;  // xx, xy, yx, yy

// A pixel's direction l, m, n; in the last place the phase of the subgrid's own place in the uv plane.
FUNCTION float4 direction(int pixel, float4 place) {
  const float l = (pixel % N - N / 2) * ((float)IMAGE_SIZE / N), m = (pixel / N - N / 2) * ((float)IMAGE_SIZE / N);
  const float t = l * l + m * m, n = t / (1.0f + sqrt(1.0f - t));
  const float u0 = TWO_PI * (place.x + N / 2 - GRID / 2) / (float)IMAGE_SIZE;
  const float v0 = TWO_PI * (place.y + N / 2 - GRID / 2) / (float)IMAGE_SIZE;
  return FLOAT4(l, m, n, u0 * l + v0 * m + place.z * n);
}

// exp(i phase)
FUNCTION float2 phasor_of(float phase) {
  const float turns = phase * (1.0f / TWO_PI);
  const float angle = TWO_PI * (turns - rint(turns));
  return FLOAT2(FAST_COS(angle), FAST_SIN(angle));
}

// a b, with the conjugate transpose of a or of b where wanted
FUNCTION Matrix product(Matrix a, Matrix b) {
  const float2 zero = FLOAT2(0.0f, 0.0f);
  Matrix c;
  UNROLL for (int i = 0; i < 2; ++i) UNROLL for (int j = 0; j < 2; ++j)
      c.p[2 * i + j] = multiply_add_complex(a.p[2 * i], b.p[j], multiply_add_complex(a.p[2 * i + 1], b.p[2 + j], zero));
  return c;
}
FUNCTION Matrix adjoint(Matrix a) {
  Matrix b;
  UNROLL for (int i = 0; i < 2; ++i) UNROLL for (int j = 0; j < 2; ++j)
      b.p[2 * i + j] = FLOAT2(a.p[2 * j + i].x, -a.p[2 * j + i].y);
  return b;
}
FUNCTION Matrix read_matrix(GLOBAL const float2* from) {
  Matrix a;
  UNROLL for (int p = 0; p < 4; ++p) a.p[p] = from[p];
  return a;
}
FUNCTION float4 first_half(Matrix a) { return FLOAT4(a.p[0].x, a.p[0].y, a.p[1].x, a.p[1].y); }
FUNCTION float4 second_half(Matrix a) { return FLOAT4(a.p[2].x, a.p[2].y, a.p[3].x, a.p[3].y); }

// Subgrids are stored with their quarters exchanged, polarisation after polarisation.
FUNCTION int stored_at(int pixel) { return (pixel / N + N / 2) % N * N + (pixel % N + N / 2) % N; }
