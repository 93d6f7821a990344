// Half-precision matrix product C = A B^T with the warpgroup instructions of Hopper (wgmma, compute capability 9.0a), CUDA. A is
// SIZE_M x SIZE_K, B is SIZE_N x SIZE_K, C is SIZE_M x SIZE_N, all halves, each row after row.
//
// A block of GROUPS warpgroups (128 threads each) computes a tile of BM x BN in steps of 64 along K: a row of a tile is 128
// bytes, and wgmma reads both operands from shared memory in the 128-byte swizzle (16-byte piece p of row r stands at p ^ r
// % 8). Copies are asynchronous and so is the multiplication: while one step's runs, later tiles are on their way. What can
// be tuned:
//   BM, BN          tile of a block; each warpgroup computes BM / GROUPS x BN
//   GROUPS          warpgroups of a block
//   STAGES          buffers in the ring; one step is multiplied, one has just been, the others are being filled
//   GROUP_M         tiles along M that run side by side before the next along N: what the L2 cache sees
#include "tensor.cuh"
#include "wgmma.cuh"

#define BK 64
#define THREADS (128 * GROUPS)
#define TILE_A (BM * 128)                     // bytes
#define STAGE ((BM + BN) * 128)
#define ROWS (BM / GROUPS / 64)               // of 64 x BN results of a warpgroup
#define STEPS (SIZE_K / BK)

template <int count>
__device__ __forceinline__ void load_tile(unsigned to, const char* from) {
#pragma unroll
  for (int i = 0; i < count * 8 / THREADS; ++i) {
    const int row = threadIdx.x / 8 + i * (THREADS / 8), piece = threadIdx.x % 8;
    copy_async(to + row * 128 + (piece ^ row % 8) * 16, from + (size_t)row * (2 * SIZE_K) + piece * 16);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
hopper_gemm(const char* __restrict__ a, const char* __restrict__ b, unsigned* __restrict__ c) {
  extern __shared__ __align__(1024) char ring[];
  const unsigned shared = (shared_address(ring) + 1023) & ~1023u;  // the swizzle counts from multiples of 1024 bytes
  const int warpgroup = threadIdx.x / 128;
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
  for (int step = 0; step < STAGES - 2; ++step) load(step);

  float sums[ROWS][BN / 2];
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) sums[r][i] = 0.0f;

#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
    wait_for_copies<STAGES - 3>();
    make_copies_visible();
    __syncthreads();  // this step's tiles are there for all, and all have done the multiplication before the last
    const unsigned tile_a = shared + step % STAGES * STAGE + warpgroup * (ROWS * 64 * 128);
    const unsigned tile_b = shared + step % STAGES * STAGE + TILE_A;
    begin_multiplications(sums);
#pragma unroll
    for (int k = 0; k < BK / 16; ++k)
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        multiply_async(sums[r], matrix_at(tile_a + r * (64 * 128) + k * 32), matrix_at(tile_b + k * 32));
    commit_multiplications();
    load(step + STAGES - 2);
    wait_for_multiplications<1>(sums);
  }
  wait_for_multiplications<0>(sums);

  // A warp has 16 rows of a warpgroup's 64; a thread has pairs of columns in two of them, eight rows apart.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int n = 0; n < BN / 8; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + (warpgroup * ROWS + r) * 64 + warp * 16 + half * 8 + lane / 4;
        const int column = first_column + n * 8 + lane % 4 * 2;
        c[((size_t)row * SIZE_N + column) / 2] = pack_halves(sums[r][4 * n + 2 * half], sums[r][4 * n + 2 * half + 1]);
      }
}
