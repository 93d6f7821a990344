// Half-precision matrix product C = A B^T on tensor cores (compute capability 8.0 and up), CUDA. A is SIZE_M x SIZE_K, B is
// SIZE_N x SIZE_K, C is SIZE_M x SIZE_N, all halves, each row after row.
//
// A block computes a tile of BM x BN in steps of BK along K. Tiles travel through a ring of buffers in shared memory by
// asynchronous copies; the 16-byte pieces of a row are exchanged (swizzled), so that the eight rows that ldmatrix reads at
// once lie in different banks. What can be tuned:
//   BM, BN, BK         tile of a block
//   WARPS_M, WARPS_N   warps of a block; each computes BM / WARPS_M x BN / WARPS_N
//   STAGES             buffers in the ring
//   GROUP_M            tiles along M that run side by side before the next along N: what the L2 cache sees
//   SUM_BITS           32: sums in single precision; 16: in half precision, faster on some boards and less exact
#include "tensor.cuh"

#define THREADS (32 * WARPS_M * WARPS_N)
#define PIECES (BK / 8)                       // of 16 bytes in a row
#define TILE_A (BM * BK * 2)                  // bytes
#define STAGE ((BM + BN) * BK * 2)
#define ROWS (BM / WARPS_M / 16)              // of 16 x 8 results of a warp
#define COLUMNS (BN / WARPS_N / 8)
#define STEPS (SIZE_K / BK)

#if SUM_BITS == 16
typedef unsigned Sums[2];
#else
typedef float Sums[4];
#endif

__device__ __forceinline__ unsigned pair(const float (&sums)[4], int row) { return pack_halves(sums[2 * row], sums[2 * row + 1]); }
__device__ __forceinline__ unsigned pair(const unsigned (&sums)[2], int row) { return sums[row]; }

// Bytes from a tile's beginning to a piece of one of its rows.
__device__ __forceinline__ unsigned offset_of(int row, int piece) {
  return (row * PIECES + (piece ^ (row / (8 / PIECES)) % PIECES)) * 16;
}

// `count` rows of SIZE_K halves from `from` on, BK of each, to a tile.
template <int count>
__device__ __forceinline__ void load_tile(unsigned to, const char* from) {
#pragma unroll
  for (int i = 0; i < count * PIECES / THREADS; ++i) {
    const int row = (threadIdx.x + i * THREADS) / PIECES, piece = threadIdx.x % PIECES;
    copy_async(to + offset_of(row, piece), from + (size_t)row * (2 * SIZE_K) + piece * 16);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
tensor_gemm(const char* __restrict__ a, const char* __restrict__ b, unsigned* __restrict__ c) {
  extern __shared__ __align__(128) char ring[];
  const unsigned shared = shared_address(ring);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp % WARPS_M * (BM / WARPS_M), warp_column = warp / WARPS_M * (BN / WARPS_N);
  const Tile tile = tile_of_block<SIZE_M / BM, SIZE_N / BN, GROUP_M>();
  const int first_row = tile.row * BM, first_column = tile.column * BN;
  a += (size_t)first_row * (2 * SIZE_K);
  b += (size_t)first_column * (2 * SIZE_K);

  const auto load = [&](int step) {
    if (step < STEPS) {
      const unsigned stage = shared + step % STAGES * STAGE;
      load_tile<BM>(stage, a + step * (2 * BK));
      load_tile<BN>(stage + TILE_A, b + step * (2 * BK));
    }
    commit_copies();
  };
  for (int step = 0; step < STAGES - 1; ++step) load(step);

  Sums sums[ROWS][COLUMNS] = {};
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // this step's tiles are there for all, and nobody reads the step's before any more
    load(step + STAGES - 1);
    const unsigned tile_a = shared + step % STAGES * STAGE, tile_b = tile_a + TILE_A;
#pragma unroll
    for (int k = 0; k < BK / 16; ++k) {
      unsigned x[ROWS][4], y[COLUMNS / 2][4];
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        load_matrices(x[r], tile_a + offset_of(warp_row + r * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
      for (int n = 0; n < COLUMNS / 2; ++n)
        load_matrices(y[n], tile_b + offset_of(warp_column + n * 16 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int n = 0; n < COLUMNS; ++n) multiply(sums[r][n], x[r], y[n / 2][n % 2 * 2], y[n / 2][n % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + warp_row + r * 16 + half * 8 + lane / 4;
        const int column = first_column + warp_column + n * 8 + lane % 4 * 2;
        c[((size_t)row * SIZE_N + column) / 2] = pair(sums[r][n], half);
      }
}
