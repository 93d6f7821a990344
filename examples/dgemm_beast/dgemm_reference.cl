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

#if COMPLEX == 1
typedef JOIN(REAL, 2) Number;
#else
typedef REAL Number;
#endif

KERNEL(16, 4, 1) dgemm_reference(GLOBAL const Number* a, GLOBAL const Number* b, GLOBAL Number* c) {
  const int m = GROUP(0) * 16 + THREAD(0), n = GROUP(1) * 4 + THREAD(1);
  if (m >= SIZE_M || n >= SIZE_N) return;
  Number sum = ZERO(Number);
  for (int k = 0; k < SIZE_K; ++k) {
    Number x = A(m, k), y = B(k, n);
#if COMPLEX == 1
    if (TRANS_A == 2) x.y = -x.y;
    if (TRANS_B == 2) y.y = -y.y;
    sum.x += x.x * y.x - x.y * y.y;
    sum.y += x.x * y.y + x.y * y.x;
#else
    sum += x * y;
#endif
  }
#if COMPLEX == 1
  c[(size_t)n * SIZE_M + m].x += sum.x;
  c[(size_t)n * SIZE_M + m].y += sum.y;
#else
  c[(size_t)n * SIZE_M + m] += sum;
#endif
}
