// A row per thread, summed in double precision: what gemv.cl is verified against.
#include "portable.h"

KERNEL(32, 1, 1) gemv_reference(GLOBAL const float* a, GLOBAL const float* x, GLOBAL float* y) {
  const size_t row = GROUP(0) * 32 + THREAD(0);
  double sum = 0;
  for (int c = 0; c < COLUMNS; ++c) sum += (double)a[row * COLUMNS + c] * x[c];
  y[row] = (float)sum;
}
