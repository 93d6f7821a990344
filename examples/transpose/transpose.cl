// Transposition of a matrix of 32-bit numbers, for OpenCL and CUDA: out[c][r] = in[r][c] with ROWS x COLUMNS numbers in.
//
// A block moves a tile. A thread reads a square of vector_width rows and columns, exchanges rows and columns in its registers, and
// writes it to local memory, from where rows of the result leave. The vectors of a row of local memory are exchanged such
// that neither side has bank conflicts. What can be tuned:
//   tile_r, tile_c   rows and columns of a tile
//   vector_width     numbers per load and store
//   threads          of a block
//   along            tiles that follow each other in the order of the blocks: 0 along rows, 1 along columns, 2 along diagonals
//   streaming        1: loads and stores that do not stay in the caches (CUDA)
#include "portable.h"
#include "rows.h"

typedef union {
  Vector vector;
  unsigned int element[vector_width];
} Elements;

#define TILES_R (ROWS / tile_r)
#define TILES_C (COLUMNS / tile_c)
#define VECTORS_R (tile_r / vector_width)
#define VECTORS_C (tile_c / vector_width)
// Where vector v of row c of the result's tile lies in local memory, whose banks are as wide as 32 numbers.
#define PLACE(c, v) ((c) * VECTORS_R + ((v) ^ ((c) / vector_width % (32 / vector_width))))

KERNEL(threads, 1, 1) transpose(GLOBAL const Vector* RESTRICT in, GLOBAL Vector* RESTRICT out) {
  LOCAL Vector tile[tile_c * VECTORS_R];
#if along == 1
  const int row_of_tiles = GROUP(0) % TILES_R, column_of_tiles = GROUP(0) / TILES_R;
#else
  const int row_of_tiles = GROUP(0) / TILES_C, column_of_tiles = (GROUP(0) + (along == 2 ? row_of_tiles : 0)) % TILES_C;
#endif

  UNROLL for (int i = 0; i < VECTORS_R * VECTORS_C / threads; ++i) {
    const int square = i * threads + THREAD(0), r = square / VECTORS_C, c = square % VECTORS_C;
    Elements rows[vector_width], column;
    UNROLL for (int j = 0; j < vector_width; ++j) rows[j].vector =
        LOAD_VECTOR(in + (size_t)(row_of_tiles * tile_r + r * vector_width + j) * (COLUMNS / vector_width) + column_of_tiles * VECTORS_C + c);
    UNROLL for (int k = 0; k < vector_width; ++k) {
      UNROLL for (int j = 0; j < vector_width; ++j) column.element[j] = rows[j].element[k];
      tile[PLACE(c * vector_width + k, r)] = column.vector;
    }
  }
  BARRIER();
  UNROLL for (int i = 0; i < tile_c * VECTORS_R / threads; ++i) {
    const int c = (i * threads + THREAD(0)) / VECTORS_R, r = (i * threads + THREAD(0)) % VECTORS_R;
    STORE_VECTOR(out + (size_t)(column_of_tiles * tile_c + c) * (ROWS / vector_width) + row_of_tiles * VECTORS_R + r, tile[PLACE(c, r)]);
  }
}
