// Sparse matrix times vector, y = A x, A in compressed rows (CSR with a begin and a length for each row), for OpenCL and
// CUDA. What can be tuned:
//   block_size        threads of a block
//   threads_per_row   threads that share a row, neighbours in their warp
//   loads             products of a thread that are on their way at once
//   read_only         1: x is read through the read-only cache
#include "portable.h"

#define ROWS_PER_BLOCK (block_size / threads_per_row)
#if read_only == 1
#define X(i) READ_ONLY(&x[i])
#else
#define X(i) x[i]
#endif

KERNEL(block_size, 1, 1)
spmv(GLOBAL const int* RESTRICT begin, GLOBAL const int* RESTRICT length, GLOBAL const int* RESTRICT column,
     GLOBAL const float* RESTRICT value, GLOBAL const float* RESTRICT x, GLOBAL float* RESTRICT y) {
  LOCAL float share[block_size];
  const int member = THREAD(0) % threads_per_row;
  const int row = GROUP(0) * ROWS_PER_BLOCK + THREAD(0) / threads_per_row;
  float sum = 0.0f;
  if (row < ROWS) {
    const int first = begin[row], end = first + length[row];
    int i = first + member;
    for (; i + (loads - 1) * threads_per_row < end; i += loads * threads_per_row) {
      float product[loads];
      UNROLL for (int l = 0; l < loads; ++l)
        product[l] = value[i + l * threads_per_row] * X(column[i + l * threads_per_row]);
      UNROLL for (int l = 0; l < loads; ++l) sum += product[l];
    }
    for (; i < end; i += threads_per_row) sum += value[i] * X(column[i]);
  }
#if threads_per_row > 1
#ifdef __OPENCL_VERSION__
  share[THREAD(0)] = sum;
  BARRIER();
  for (int distance = threads_per_row / 2; distance > 0; distance /= 2) {
    if (member < distance) share[THREAD(0)] += share[THREAD(0) + distance];
    BARRIER();
  }
  sum = share[THREAD(0)];
#else
  UNROLL for (int distance = threads_per_row / 2; distance > 0; distance /= 2)
    sum += FROM_ABOVE(sum, distance, threads_per_row);
#endif
#endif
  if (row < ROWS && member == 0) y[row] = sum;
}
