// Single-precision matrix product C = A^T B for fast GPUs, for OpenCL and CUDA (examples/gemm is the one that other tuners
// know). A is SIZE_K x SIZE_M, B is SIZE_K x SIZE_N, C is SIZE_N x SIZE_M, each row after row.
//
// A block computes a tile of BM x BN, in steps of BK along K; tiles travel through a ring of buffers in local memory,
// copied asynchronously where the GPU can (cp.async), and operands of the next multiplication are read from local memory
// while the present one runs. What can be tuned:
//   BM, BN, BK   tile of a block
//   TM, TN       tile of a thread, in registers
//   WARP_M       threads of a warp along M (of 32): what the warp reads from local memory follows from its shape
//   STAGES       buffers in the ring
//   GROUP_M      tiles along M that run side by side before the next along N: what the L2 cache sees
//   MIN_BLOCKS   blocks per multiprocessor that the compiler has to leave registers for (CUDA)
#include "portable.h"

#define THREADS ((BM / TM) * (BN / TN))
#define WARP_N (32 / WARP_M)
#define WARPS_ALONG_M (BM / (WARP_M * TM))
#define VECTORS_A (BK * BM / 4 / THREADS)
#define VECTORS_B (BK * BN / 4 / THREADS)
#define TILES_M (SIZE_M / BM)
#define TILES_N (SIZE_N / BN)
#define STEPS (SIZE_K / BK)

#if defined(__OPENCL_VERSION__) || defined(__HIP__)  // without copies that run beside the arithmetic
#define COPY(to, from) *(to) = *(from)
#define COMMIT()
#define WAIT_FOR_ALL_BUT(n)
#else
FUNCTION void copy_async(float4* to, const float4* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
#define COPY(to, from) copy_async(to, from)
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_FOR_ALL_BUT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#endif

// A step's tiles to the ring's next place.
#define LOAD_TILES(step, place)                                                                       \
  UNROLL for (int i = 0; i < VECTORS_A; ++i) {                                                        \
    const int v = thread + i * THREADS;                                                               \
    COPY(&tiles_a[place][v / (BM / 4)][v % (BM / 4)],                                                 \
         &a[((step) * BK + v / (BM / 4)) * (SIZE_M / 4) + tile_m * (BM / 4) + v % (BM / 4)]);         \
  }                                                                                                   \
  UNROLL for (int i = 0; i < VECTORS_B; ++i) {                                                        \
    const int v = thread + i * THREADS;                                                               \
    COPY(&tiles_b[place][v / (BN / 4)][v % (BN / 4)],                                                 \
         &b[((step) * BK + v / (BN / 4)) * (SIZE_N / 4) + tile_n * (BN / 4) + v % (BN / 4)]);         \
  }

// Where a thread's vectors lie in the tile: those of a warp's row side by side.
#define VECTOR_M(i) (warp_m * (WARP_M * TM / 4) + (i) * WARP_M + thread_m)
#define VECTOR_N(i) (warp_n * (WARP_N * TN / 4) + (i) * WARP_N + thread_n)
#define READ_OPERANDS(set, place, k)                                                    \
  UNROLL for (int i = 0; i < TM / 4; ++i) x[set][i] = tiles_a[place][k][VECTOR_M(i)];   \
  UNROLL for (int i = 0; i < TN / 4; ++i) y[set][i].vector = tiles_b[place][k][VECTOR_N(i)];

typedef union {
  float4 vector;
  float element[4];
} Elements;

KERNEL_AT_LEAST(THREADS, 1, 1, MIN_BLOCKS)
sgemm(GLOBAL const float4* RESTRICT a, GLOBAL const float4* RESTRICT b, GLOBAL float4* RESTRICT c) {
  LOCAL float4 tiles_a[STAGES][BK][BM / 4];
  LOCAL float4 tiles_b[STAGES][BK][BN / 4];

  const int thread = THREAD(0), warp = thread / 32, lane = thread % 32;
  const int warp_m = warp % WARPS_ALONG_M, warp_n = warp / WARPS_ALONG_M;
  const int thread_m = lane % WARP_M, thread_n = lane / WARP_M;
  const int group = GROUP(0) / (GROUP_M * TILES_N), within = GROUP(0) % (GROUP_M * TILES_N);
  const int height = min(GROUP_M, TILES_M - group * GROUP_M);
  const int tile_m = group * GROUP_M + within % height, tile_n = within / height;

  float4 sum[TN][TM / 4];
  UNROLL for (int n = 0; n < TN; ++n) UNROLL for (int m = 0; m < TM / 4; ++m) sum[n][m] = ZERO(float4);

  UNROLL for (int stage = 0; stage < STAGES - 1; ++stage) {
    if (stage < STEPS) {
      LOAD_TILES(stage, stage)
    }
    COMMIT();
  }
  WAIT_FOR_ALL_BUT(STAGES - 2);
  BARRIER();

  float4 x[2][TM / 4];
  Elements y[2][TN / 4];
  int read = 0, write = STAGES - 1;
  READ_OPERANDS(0, 0, 0)
  UNROLL_BY(1) for (int step = 0; step < STEPS; ++step) {
    UNROLL for (int k = 0; k < BK; ++k) {
      if (k == BK - 1) {
        // The next step's tiles have to be there for all; nobody reads the present ones any more.
        WAIT_FOR_ALL_BUT(STAGES - 2);
        BARRIER();
        read = read + 1 == STAGES ? 0 : read + 1;
      }
      READ_OPERANDS((k + 1) % 2, read, (k + 1) % BK)
      if (k == 0) {
        if (step + STAGES - 1 < STEPS) {
          LOAD_TILES(step + STAGES - 1, write)
        }
        COMMIT();
        write = write + 1 == STAGES ? 0 : write + 1;
      }
      UNROLL for (int n = 0; n < TN; ++n) UNROLL for (int m = 0; m < TM / 4; ++m) {
        const float factor = y[k % 2][n / 4].element[n % 4];
        sum[n][m].x = FUSED(x[k % 2][m].x, factor, sum[n][m].x);
        sum[n][m].y = FUSED(x[k % 2][m].y, factor, sum[n][m].y);
        sum[n][m].z = FUSED(x[k % 2][m].z, factor, sum[n][m].z);
        sum[n][m].w = FUSED(x[k % 2][m].w, factor, sum[n][m].w);
      }
    }
  }

  UNROLL for (int n = 0; n < TN; ++n) UNROLL for (int m = 0; m < TM / 4; ++m)
      c[(tile_n * BN + 4 * VECTOR_N(n / 4) + n % 4) * (SIZE_M / 4) + tile_m * (BM / 4) + VECTOR_M(m)] = sum[n][m];
}
