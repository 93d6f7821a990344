/* Column by column, in double precision. */
#include <stdlib.h>

void lud_reference(const float* a0, float* a) {
  const long n = LUD_N;
  double* d = malloc(sizeof(double) * n * n);
  for (long i = 0; i < n * n; ++i) d[i] = a0[i];
  for (long i = 0; i < n; ++i) d[i * n + i] += n;
  for (long k = 0; k < n; ++k) {
    for (long i = k + 1; i < n; ++i) {
      const double l = d[i * n + k] /= d[k * n + k];
      for (long j = k + 1; j < n; ++j) d[i * n + j] -= l * d[k * n + j];
    }
  }
  for (long i = 0; i < n * n; ++i) a[i] = (float)d[i];
  free(d);
}
