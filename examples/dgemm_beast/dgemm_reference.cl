// One element of C per thread: what dgemm.cl is verified against.
#include "portable.h"

#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#if TRANS_A == 0
#define A(m, k) a[(size_t)(k)*SIZE_M + (m)]
#else
#define A(m, k) a[(size_t)(m)*SIZE_K + (k)]
#endif
#if TRANS_B == 0
#define B(k, n) b[(size_t)(n)*SIZE_K + (k)]
#else
#define B(k, n) b[(size_t)(k)*SIZE_N + (n)]
#endif

KERNEL(16, 4, 1) dgemm_reference(GLOBAL const REAL* a, GLOBAL const REAL* b, GLOBAL REAL* c) {
  const int m = GROUP(0) * 16 + THREAD(0), n = GROUP(1) * 4 + THREAD(1);
  if (m >= SIZE_M || n >= SIZE_N) return;
  REAL sum = 0;
  for (int k = 0; k < SIZE_K; ++k) sum += A(m, k) * B(k, n);
  c[(size_t)n * SIZE_M + m] += sum;
}
