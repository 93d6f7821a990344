#include "portable.h"

KERNEL(16, 4, 1) matmul_reference(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* c) {
  const int column = GROUP(0) * 16 + THREAD(0), row = GROUP(1) * 4 + THREAD(1);
  float sum = 0.0f;
  for (int k = 0; k < SIZE; ++k) sum += a[row * SIZE + k] * b[k * SIZE + column];
  c[row * SIZE + column] = sum;
}
