// Layer normalisation of every row, halves in and out, for OpenCL and CUDA:
//   out[r][c] = (in[r][c] - mean of the row) / sqrt(variance of the row + EPSILON) * scale[c] + shift[c]
// What can be tuned:
//   threads_per_row, rows_per_block   block
//   vector_width                      pairs of halves per load and store (4: 16 bytes)
//   in_registers                      1: a row is read once and kept in registers, 0: it is read twice
//   two_pass                          1: mean first, then the squares of what differs from it; 0: sum and squares at once, which
//                                     is less exact where the mean is large
//   streaming                         1: stores, and loads into registers, that do not stay in the caches (CUDA)
#include "portable.h"
#include "halves.h"
#include "rows.h"

#define VECTORS (COLUMNS / 2 / vector_width / threads_per_row)  // of a thread

KERNEL(threads_per_row, rows_per_block, 1)
layer_norm(GLOBAL const Vector* RESTRICT in, GLOBAL const Vector* RESTRICT scale, GLOBAL const Vector* RESTRICT shift,
           GLOBAL Vector* RESTRICT out) {
  LOCAL float exchange[rows_per_block][threads_per_row];
  const int thread = THREAD(0), row = THREAD(1);
  const int start = (GROUP(0) * rows_per_block + row) * (COLUMNS / 2 / vector_width) + thread;

  float sum = 0.0f, squares = 0.0f;
#if in_registers == 1
  Pairs kept[VECTORS];
#define ROW(v) kept[v].vector
#define FOR_VECTORS(v) UNROLL for (int v = 0; v < VECTORS; ++v)
  UNROLL for (int v = 0; v < VECTORS; ++v) kept[v].vector = LOAD_VECTOR(in + start + v * threads_per_row);
#else
#define ROW(v) in[start + v * threads_per_row]
#define FOR_VECTORS(v) UNROLL_BY(4) for (int v = 0; v < VECTORS; ++v)
#endif
  FOR_VECTORS(v) {
    Pairs next;
    next.vector = ROW(v);
    UNROLL for (int p = 0; p < vector_width; ++p) {
      const float2 x = unpack_halves(next.pair[p]);
      sum += x.x + x.y;
#if two_pass == 0
      squares += x.x * x.x + x.y * x.y;
#endif
    }
  }
  OVER_THE_ROW(sum, ADD)
  const float mean = sum / COLUMNS;
#if two_pass == 1
  FOR_VECTORS(v) {
    Pairs next;
    next.vector = ROW(v);
    UNROLL for (int p = 0; p < vector_width; ++p) {
      const float2 x = unpack_halves(next.pair[p]);
      squares += (x.x - mean) * (x.x - mean) + (x.y - mean) * (x.y - mean);
    }
  }
#endif
  OVER_THE_ROW(squares, ADD)
#if two_pass == 1
  const float variance = squares / COLUMNS;
#else
  const float variance = fmax(squares / COLUMNS - mean * mean, 0.0f);
#endif
  const float factor = rsqrt(variance + (float)EPSILON);
  FOR_VECTORS(v) {
    Pairs next, times, plus;
    next.vector = ROW(v);
    times.vector = scale[thread + v * threads_per_row];
    plus.vector = shift[thread + v * threads_per_row];
    UNROLL for (int p = 0; p < vector_width; ++p) {
      const float2 x = unpack_halves(next.pair[p]), a = unpack_halves(times.pair[p]), b = unpack_halves(plus.pair[p]);
      next.pair[p] = pack_halves(FLOAT2((x.x - mean) * factor * a.x + b.x, (x.y - mean) * factor * a.y + b.y));
    }
    STORE_VECTOR(out + start + v * threads_per_row, next.vector);
  }
}
