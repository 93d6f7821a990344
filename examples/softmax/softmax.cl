// Softmax of every row, halves in and out, for OpenCL and CUDA:
//   out[r][c] = exp(in[r][c] - max over c of in[r][c]) / (the sum of these exponentials over the row)
// What can be tuned:
//   threads_per_row, rows_per_block   block
//   vector_width                      pairs of halves per load and store (4: 16 bytes)
//   in_registers                      1: a row is read once and kept in registers
//                                     0: it is read twice, the first time for maximum and sum at once ("online")
//   fast_exponential                  1: the hardware's, 0: the library's
//   streaming                         1: loads and stores that do not stay in the caches (CUDA)
#include "portable.h"
#include "halves.h"
#include "rows.h"

#define PAIRS (COLUMNS / 2)
#define VECTORS (PAIRS / vector_width / threads_per_row)  // of a thread
#if fast_exponential == 1
#define EXP(x) FAST_EXP(x)
#else
#define EXP(x) exp(x)
#endif

KERNEL(threads_per_row, rows_per_block, 1)
softmax(GLOBAL const Vector* RESTRICT in, GLOBAL Vector* RESTRICT out) {
  LOCAL float exchange[rows_per_block][threads_per_row];
  const int thread = THREAD(0), row = THREAD(1);
  const int start = (GROUP(0) * rows_per_block + row) * (PAIRS / vector_width) + thread;

  float largest = -1e30f, sum = 0.0f;
#if in_registers == 1
  float2 kept[VECTORS * vector_width];
  Pairs next[VECTORS];
  UNROLL for (int v = 0; v < VECTORS; ++v) next[v].vector = LOAD_VECTOR(in + start + v * threads_per_row);
  UNROLL for (int v = 0; v < VECTORS; ++v) UNROLL for (int p = 0; p < vector_width; ++p) {
    kept[v * vector_width + p] = unpack_halves(next[v].pair[p]);
    largest = fmax(largest, fmax(kept[v * vector_width + p].x, kept[v * vector_width + p].y));
  }
  OVER_THE_ROW(largest, fmax)
  UNROLL for (int i = 0; i < VECTORS * vector_width; ++i) {
    kept[i].x = EXP(kept[i].x - largest);
    kept[i].y = EXP(kept[i].y - largest);
    sum += kept[i].x + kept[i].y;
  }
  OVER_THE_ROW(sum, ADD)
  const float scale = 1.0f / sum;
  UNROLL for (int v = 0; v < VECTORS; ++v) {
    Pairs result;
    UNROLL for (int p = 0; p < vector_width; ++p) result.pair[p] = pack_halves(kept[v * vector_width + p] * scale);
    STORE_VECTOR(out + start + v * threads_per_row, result.vector);
  }
#else
  for (int v = 0; v < VECTORS; ++v) {
    Pairs next;
    next.vector = in[start + v * threads_per_row];
    UNROLL for (int p = 0; p < vector_width; ++p) {
      const float2 x = unpack_halves(next.pair[p]);
      const float before = largest;
      largest = fmax(largest, fmax(x.x, x.y));
      sum = sum * EXP(before - largest) + EXP(x.x - largest) + EXP(x.y - largest);
    }
  }
  const float mine = largest;
  OVER_THE_ROW(largest, fmax)
  sum *= EXP(mine - largest);
  OVER_THE_ROW(sum, ADD)
  const float scale = 1.0f / sum;
  for (int v = 0; v < VECTORS; ++v) {
    Pairs next;
    next.vector = LOAD_VECTOR(in + start + v * threads_per_row);
    UNROLL for (int p = 0; p < vector_width; ++p) {
      const float2 x = unpack_halves(next.pair[p]);
      next.pair[p] = pack_halves(FLOAT2(EXP(x.x - largest) * scale, EXP(x.y - largest) * scale));
    }
    STORE_VECTOR(out + start + v * threads_per_row, next.vector);
  }
#endif
}
