/* LU decomposition without pivoting, in blocks of BLOCK x BLOCK, in place: A = L U with ones on L's diagonal.
   For each block k of the diagonal three phases, each a launch: 0, the diagonal block itself; 1, the blocks of its row (they
   become U) and of its column (L); 2, all blocks to the right and below lose the product of the two. */
#include "portable.h"

#ifdef RESET
/* a0 with a diagonal that dominates, so that no pivoting is needed */
KERNEL reset(GLOBAL const float* a0, GLOBAL float* a) {
  const int x = GLOBAL_X, y = GLOBAL_Y;
  if (x < LUD_N && y < LUD_N) a[y * LUD_N + x] = a0[y * LUD_N + x] + (x == y ? (float)LUD_N : 0.0f);
}
#endif

#ifdef LUD
#define AT(row, column) a[((row) * BLOCK + ty) * LUD_N + (column) * BLOCK + tx]

KERNEL lud(GLOBAL float* a, int k, int phase) {
  LOCAL float first[BLOCK][BLOCK];
  LOCAL float second[BLOCK][BLOCK];
  const int tx = LOCAL_X, ty = LOCAL_Y;
  const int left = LUD_N / BLOCK - k - 1; /* blocks right of the diagonal, and below */
  if (phase == 0) {
    first[ty][tx] = AT(k, k);
    BARRIER;
    for (int i = 0; i < BLOCK - 1; ++i) {
      if (tx == i && ty > i) first[ty][i] /= first[i][i];
      BARRIER;
      if (tx > i && ty > i) first[ty][tx] -= first[ty][i] * first[i][tx];
      BARRIER;
    }
    AT(k, k) = first[ty][tx];
  } else if (phase == 1) {
    const int in_row = GROUP_X < left;
    const int other = k + 1 + (in_row ? GROUP_X : GROUP_X - left);
    const int row = in_row ? k : other, column = in_row ? other : k;
    first[ty][tx] = AT(k, k);
    second[ty][tx] = AT(row, column);
    BARRIER;
    for (int i = 0; i < BLOCK; ++i) {
      if (in_row) {
        if (ty > i) second[ty][tx] -= first[ty][i] * second[i][tx];
      } else {
        if (tx == i) second[ty][i] /= first[i][i];
      }
      BARRIER;
      if (!in_row && tx > i) second[ty][tx] -= second[ty][i] * first[i][tx];
      BARRIER;
    }
    AT(row, column) = second[ty][tx];
  } else {
    const int row = k + 1 + GROUP_X / left, column = k + 1 + GROUP_X % left;
    first[ty][tx] = AT(row, k);
    second[ty][tx] = AT(k, column);
    BARRIER;
    float sum = 0;
    for (int i = 0; i < BLOCK; ++i) sum += first[ty][i] * second[i][tx];
    AT(row, column) -= sum;
  }
}
#endif
