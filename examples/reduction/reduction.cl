// The sum of SIZE numbers, for OpenCL and CUDA. Each block sums its share and adds it to the result. What can be tuned:
//   block_size, blocks   threads of a block, blocks
//   vector_width         numbers per load
//   loads                loads of a thread that are on their way at once
//   sums                 how a thread adds up: "float", "kahan" (compensated), or "double". Slower or not, they differ
//                        in their error: tune for pareto(time, error)
//   use_shuffle          1: threads of a warp exchange sums through registers (CUDA), 0: through local memory
#include "portable.h"

typedef JOIN(float, vector_width) Vector;
typedef union {
  Vector vector;
  float element[vector_width];
} Elements;

#define FLOAT_SUMS 0
#define KAHAN_SUMS 1
#define DOUBLE_SUMS 2
#if sums == DOUBLE_SUMS
typedef double Sum;
#else
typedef float Sum;
#endif

// The result is added to by every block; doubles keep the order in which they come out of it.
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
void add_to(volatile global double* result, double value) {
  volatile global ulong* bits = (volatile global ulong*)result;
  ulong before = *bits, seen;
  while ((seen = atom_cmpxchg(bits, before, as_ulong(as_double(before) + value))) != before) before = seen;
}
#else
FUNCTION void add_to(double* result, double value) { atomicAdd(result, value); }
#endif

KERNEL(block_size, 1, 1) reduction(GLOBAL const Vector* RESTRICT in, GLOBAL double* result) {
  Sum sum[loads];
  UNROLL for (int l = 0; l < loads; ++l) sum[l] = 0;
#if sums == KAHAN_SUMS
  float lost[loads];
  UNROLL for (int l = 0; l < loads; ++l) lost[l] = 0;
#endif
  for (int first = GROUP(0) * (block_size * loads) + THREAD(0); first < SIZE / vector_width;
       first += blocks * block_size * loads) {
    Elements next[loads];
    UNROLL for (int l = 0; l < loads; ++l) {
      const int i = first + l * block_size;
      next[l].vector = i < SIZE / vector_width ? in[i] : ZERO(Vector);
    }
    UNROLL for (int l = 0; l < loads; ++l) UNROLL for (int v = 0; v < vector_width; ++v) {
#if sums == KAHAN_SUMS
      const float term = next[l].element[v] - lost[l];
      const float both = sum[l] + term;
      lost[l] = (both - sum[l]) - term;
      sum[l] = both;
#else
      sum[l] += next[l].element[v];
#endif
    }
  }
  Sum mine = 0;
  UNROLL for (int l = 0; l < loads; ++l) mine += sum[l];

  LOCAL Sum share[block_size];
  int left = block_size;  // threads whose sums are still to be added
#if use_shuffle == 1 && !defined(__OPENCL_VERSION__)
  UNROLL for (int distance = 16; distance > 0; distance /= 2) mine += FROM_ABOVE(mine, distance, 32);
  if (THREAD(0) % 32 == 0) share[THREAD(0) / 32] = mine;
  left = block_size / 32;
#else
  share[THREAD(0)] = mine;
#endif
  BARRIER();
  for (int half_of_them = left / 2; half_of_them > 0; half_of_them /= 2) {
    if (THREAD(0) < half_of_them) share[THREAD(0)] += share[THREAD(0) + half_of_them];
    BARRIER();
  }
  if (THREAD(0) == 0) add_to(result, (double)share[0]);
}
