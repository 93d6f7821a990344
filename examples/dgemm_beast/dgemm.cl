// C += op(A) op(B) as the stencil of the BEAST autotuner has it (Anzt et al. 2015, Section 2.2), for OpenCL and CUDA; written
// anew from the paper's description. Matrices are stored column after column; op transposes or not. Stripes of A (blk_m x
// blk_k) and B (blk_k x blk_n) go to local memory, the threads synchronise, multiply what is there, synchronise, and so on.
//   dim_m, dim_n         threads of a block; thread (i, j) computes rows i, i + dim_m ... and columns j, j + dim_n ...
//   blk_m, blk_n, blk_k  tile of C and width of the stripes
//   blk_m_a, blk_n_a     shape in which the same threads read A's stripe, rows by columns of op(A)
//   blk_m_b, blk_n_b     and B's
//   simd                 1: pairs of numbers per load and store, from global and, where a thread has pairs, local memory
//   read_a, read_b       texture: through the read-only cache (on today's GPUs that is the texture path), or not
//   read_ab              interleaved: A and B in one loop nest, or first A and then B
// Constants: REAL is double or float; COMPLEX 1: numbers are complex, and simd is 0; TRANS_A, TRANS_B 1: A (B) is stored transposed,
// 2: transposed and conjugated.
#include "portable.h"

#define texture 1
#define no_texture 0
#define interleaved 1
#define non_interleaved 0

#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
typedef JOIN(REAL, 2) Pair;

#if COMPLEX == 1
typedef Pair Number;
#define SIGN_A (TRANS_A == 2 ? -1 : 1)   // of the imaginary part
#define SIGN_B (TRANS_B == 2 ? -1 : 1)
#define ADD(to, what)    \
  {                      \
    (to).x += (what).x;  \
    (to).y += (what).y;  \
  }
#define ADD_PRODUCT(to, a, b)                                 \
  {                                                           \
    (to).x += (a).x * (b).x - SIGN_A * SIGN_B * (a).y * (b).y; \
    (to).y += SIGN_B * (a).x * (b).y + SIGN_A * (a).y * (b).x; \
  }
#else
typedef REAL Number;
#define ADD(to, what) (to) += (what);
#define ADD_PRODUCT(to, a, b) (to) += (a) * (b);
#endif

// A pointer without "restrict" and "const" keeps CUDA's compiler from using the read-only cache on its own.
#if read_a == texture
#define FROM_A(p) READ_ONLY(p)
#else
#define FROM_A(p) (*(p))
#endif
#if read_b == texture
#define FROM_B(p) READ_ONLY(p)
#else
#define FROM_B(p) (*(p))
#endif

#define THREADS (dim_m * dim_n)
#define ROWS (blk_m / dim_m)
#define COLUMNS (blk_n / dim_n)
#define WIDTH (1 + simd)

// Neighbouring threads read along the direction in which the matrix is stored, WIDTH numbers each.
#if TRANS_A == 0
#define STEP_A (blk_m_a * WIDTH)   // of a thread along the stored direction, and its number of steps
#define MANY_A (blk_m / STEP_A)
#define ACROSS_A blk_n_a
#define LINES_A (blk_k / blk_n_a)
#define ALONG_A(t) ((t) % blk_m_a * WIDTH)
#define LINE_A(t) ((t) / blk_m_a)
#else
#define STEP_A (blk_n_a * WIDTH)
#define MANY_A (blk_k / STEP_A)
#define ACROSS_A blk_m_a
#define LINES_A (blk_m / blk_m_a)
#define ALONG_A(t) ((t) % blk_n_a * WIDTH)
#define LINE_A(t) ((t) / blk_n_a)
#endif
#if TRANS_B == 0
#define STEP_B (blk_m_b * WIDTH)
#define MANY_B (blk_k / STEP_B)
#define ACROSS_B blk_n_b
#define LINES_B (blk_n / blk_n_b)
#define ALONG_B(t) ((t) % blk_m_b * WIDTH)
#define LINE_B(t) ((t) / blk_m_b)
#else
#define STEP_B (blk_n_b * WIDTH)
#define MANY_B (blk_n / STEP_B)
#define ACROSS_B blk_m_b
#define LINES_B (blk_k / blk_m_b)
#define ALONG_B(t) ((t) % blk_n_b * WIDTH)
#define LINE_B(t) ((t) / blk_n_b)
#endif

// One load of a thread: `x` along the stored direction and `y` across it, both within the stripe. Zero outside of the
// matrix. Stripes lie in local memory as [k][m] and [k][n].
#define READ(MATRIX, x, y, first_x, first_y, LENGTH_X, LENGTH_Y, FROM, STORE)                                   \
  {                                                                                                           \
    const int gx = (first_x) + (x), gy = (first_y) + (y);                                                     \
    Number value[WIDTH];                                                                                        \
    if (gx < LENGTH_X && gy < LENGTH_Y) {                                                                     \
      FETCH(value, MATRIX, (size_t)gy * LENGTH_X + gx, FROM)                                                  \
    } else {                                                                                                  \
      UNROLL for (int w = 0; w < WIDTH; ++w) value[w] = ZERO(Number);                                         \
    }                                                                                                         \
    UNROLL for (int w = 0; w < WIDTH; ++w) STORE((x) + w, y) = value[w];                                      \
  }
#if simd == 1
#define FETCH(value, MATRIX, i, FROM)                                 \
  const Pair pair = FROM((GLOBAL const Pair*)&MATRIX[i]);             \
  value[0] = pair.x;                                                  \
  value[1] = pair.y;
#else
#define FETCH(value, MATRIX, i, FROM) value[0] = FROM(&MATRIX[i]);
#endif

#if TRANS_A == 0
#define STORE_A(x, y) stripe_a[(y) * blk_m + (x)]
#define READ_A(i) READ(a, ALONG_A(thread) + (i) % MANY_A * STEP_A, LINE_A(thread) + (i) / MANY_A * ACROSS_A, first_m, k0, \
                       SIZE_M, SIZE_K, FROM_A, STORE_A)
#else
#define STORE_A(x, y) stripe_a[(x) * blk_m + (y)]
#define READ_A(i) READ(a, ALONG_A(thread) + (i) % MANY_A * STEP_A, LINE_A(thread) + (i) / MANY_A * ACROSS_A, k0, first_m, \
                       SIZE_K, SIZE_M, FROM_A, STORE_A)
#endif
#if TRANS_B == 0
#define STORE_B(x, y) stripe_b[(x) * blk_n + (y)]
#define READ_B(i) READ(b, ALONG_B(thread) + (i) % MANY_B * STEP_B, LINE_B(thread) + (i) / MANY_B * ACROSS_B, k0, first_n, \
                       SIZE_K, SIZE_N, FROM_B, STORE_B)
#else
#define STORE_B(x, y) stripe_b[(y) * blk_n + (x)]
#define READ_B(i) READ(b, ALONG_B(thread) + (i) % MANY_B * STEP_B, LINE_B(thread) + (i) / MANY_B * ACROSS_B, first_n, k0, \
                       SIZE_N, SIZE_K, FROM_B, STORE_B)
#endif
#define READS_A (MANY_A * LINES_A)
#define READS_B (MANY_B * LINES_B)

// Pairs of rows (columns) of a thread lie side by side where vectors are used and it has whole pairs.
#if simd == 1 && ROWS % 2 == 0
#define ROW(i) (((i) / 2 * dim_m + thread_m) * 2 + (i) % 2)
#else
#define ROW(i) (thread_m + (i) * dim_m)
#endif
#if simd == 1 && COLUMNS % 2 == 0
#define COLUMN(j) (((j) / 2 * dim_n + thread_n) * 2 + (j) % 2)
#else
#define COLUMN(j) (thread_n + (j) * dim_n)
#endif

KERNEL(dim_m, dim_n, 1) dgemm(GLOBAL const Number* a, GLOBAL const Number* b, GLOBAL Number* c) {
#ifdef __OPENCL_VERSION__
  LOCAL Number stripe_a[blk_k * blk_m] __attribute__((aligned(16)));
  LOCAL Number stripe_b[blk_k * blk_n] __attribute__((aligned(16)));
#else
  LOCAL __align__(16) Number stripe_a[blk_k * blk_m];
  LOCAL __align__(16) Number stripe_b[blk_k * blk_n];
#endif
  const int thread_m = THREAD(0), thread_n = THREAD(1), thread = thread_n * dim_m + thread_m;
  const int first_m = GROUP(0) * blk_m, first_n = GROUP(1) * blk_n;

  Number sum[COLUMNS][ROWS];
  UNROLL for (int j = 0; j < COLUMNS; ++j) UNROLL for (int i = 0; i < ROWS; ++i) sum[j][i] = ZERO(Number);

  for (int k0 = 0; k0 < SIZE_K; k0 += blk_k) {
#if read_ab == interleaved
    UNROLL for (int i = 0; i < (READS_A > READS_B ? READS_A : READS_B); ++i) {
      if (i < READS_A) READ_A(i)
      if (i < READS_B) READ_B(i)
    }
#else
    UNROLL for (int i = 0; i < READS_A; ++i) READ_A(i)
    UNROLL for (int i = 0; i < READS_B; ++i) READ_B(i)
#endif
    BARRIER();
    UNROLL_BY(4) for (int k = 0; k < blk_k; ++k) {
      Number x[ROWS], y[COLUMNS];
      UNROLL for (int i = 0; i < ROWS; ++i) x[i] = stripe_a[k * blk_m + ROW(i)];
      UNROLL for (int j = 0; j < COLUMNS; ++j) y[j] = stripe_b[k * blk_n + COLUMN(j)];
      UNROLL for (int j = 0; j < COLUMNS; ++j) UNROLL for (int i = 0; i < ROWS; ++i) ADD_PRODUCT(sum[j][i], x[i], y[j])
    }
    BARRIER();
  }

  UNROLL for (int j = 0; j < COLUMNS; ++j) UNROLL for (int i = 0; i < ROWS; ++i) {
    const int m = first_m + ROW(i), n = first_n + COLUMN(j);
    if (m < SIZE_M && n < SIZE_N) ADD(c[(size_t)n * SIZE_M + m], sum[j][i])
  }
}
