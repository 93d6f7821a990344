/* Row by row: a row of the product is the sum of B's rows, each times an element of A's row; sums in double precision. */
#include <stdlib.h>

void matrixmul_reference(const float* a, const float* b, float* c) {
  double* row = malloc(MM_N * sizeof(double));
  for (long y = 0; y < MM_N; ++y) {
    for (long x = 0; x < MM_N; ++x) row[x] = 0;
    for (long k = 0; k < MM_N; ++k) {
      const double factor = a[y * MM_N + k];
      for (long x = 0; x < MM_N; ++x) row[x] += factor * b[k * MM_N + x];
    }
    for (long x = 0; x < MM_N; ++x) c[y * MM_N + x] = (float)row[x];
  }
  free(row);
}
