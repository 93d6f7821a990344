// y = A x with a matrix of floats, ROWS x COLUMNS, row after row, for OpenCL and CUDA: the matrix is read once, by threads that take
// some rows at a time, so that they read x as often less from the caches. What can be tuned:
//   threads_per_row   threads that share rows
//   rows_per_block    groups of such threads in a block
//   rows_at_once      rows of a group that a thread reads side by side
//   vector_width      numbers per load
//   loads             loads of a thread from each row that are on their way at once
//   streaming         1: the matrix does not stay in the caches (CUDA)
#include "portable.h"
#include "rows.h"

typedef union {
  Vector vector;
  float element[vector_width];
} Floats;

#define VECTORS (COLUMNS / vector_width)

KERNEL(threads_per_row, rows_per_block, 1)
gemv(GLOBAL const Vector* RESTRICT a, GLOBAL const Vector* RESTRICT x, GLOBAL float* RESTRICT y) {
  LOCAL float exchange[rows_per_block][threads_per_row];
  const int thread = THREAD(0), row = THREAD(1);
  const int first = (GROUP(0) * rows_per_block + row) * rows_at_once;

  float sum[rows_at_once];
  UNROLL for (int r = 0; r < rows_at_once; ++r) sum[r] = 0;
  for (int start = thread; start < VECTORS; start += loads * threads_per_row) {
    Floats factor[rows_at_once][loads];
    UNROLL for (int r = 0; r < rows_at_once; ++r) UNROLL for (int l = 0; l < loads; ++l)
        factor[r][l].vector = LOAD_VECTOR(a + (size_t)(first + r) * VECTORS + start + l * threads_per_row);
    UNROLL for (int l = 0; l < loads; ++l) {
      Floats other;
      other.vector = x[start + l * threads_per_row];
      UNROLL for (int r = 0; r < rows_at_once; ++r) UNROLL for (int v = 0; v < vector_width; ++v)
          sum[r] = FUSED(factor[r][l].element[v], other.element[v], sum[r]);
    }
  }
  UNROLL for (int r = 0; r < rows_at_once; ++r) {
    OVER_THE_ROW(sum[r], ADD)
    if (thread == 0) y[first + r] = sum[r];
  }
}
