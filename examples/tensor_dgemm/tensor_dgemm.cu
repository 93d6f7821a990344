// Double-precision matrix product C = A B on Hopper's tensor cores with the copy engine and clusters (compute capability 9.0),
// CUDA. A is SIZE_M x SIZE_K, B is SIZE_K x SIZE_N, C is SIZE_M x SIZE_N, each column after column as in BLAS.
//
// The last four warps of a block copy (one of their threads does, with few registers), eight others multiply. Steps of 16 along K go through a ring of STAGES
// buffers in the 128-byte swizzle of the copy engine. Operands are read from there as pairs, 16 bytes at a time, which go to
// the registers where the instruction wants them: two rows of A in its rows i and i + 8, two rows of B in its rows k and k + 4;
// the order of summation is free. Blocks of a cluster copy parts of what they share and send them to each other. Blocks
// take one tile after another; the next is copied while results leave. What can be tuned:
//   BM, BN                  tile of a block
//   WARPS_M                 of the eight warps along M; each computes BM / WARPS_M x BN / (8 / WARPS_M)
//   DEPTH                   columns of A that one instruction multiplies, 8 or 16
//   STAGES                  buffers in the ring
//   CLUSTER_M, CLUSTER_N    blocks of a cluster along M (they share a tile of B) and along N (a tile of A)
//   GROUP_M                 clusters along M that run side by side before the next along N: what the L2 cache sees
#include "tensor.cuh"
#include "hopper.cuh"

#define BK 16
#define WARPS 8                               // that multiply
#define WARPS_N (WARPS / WARPS_M)
#define THREADS (32 * (WARPS + 4))
#define CLUSTER (CLUSTER_M * CLUSTER_N)
#define TILE_A (BM * 128)                     // bytes
#define STAGE ((BM + BN) * 128)
#define BOX (BK * 128)                        // 16 rows of a step of A
#define ROWS (BM / WARPS_M / 16)              // of 16 x 8 results of a warp
#define COLUMNS (BN / WARPS_N / 8)
#define STEPS (SIZE_K / BK)
#define CLUSTERS_M (SIZE_M / (BM * CLUSTER_M))
#define CLUSTERS_N (SIZE_N / (BN * CLUSTER_N))

struct Maps {
  TensorMap a, b;
};
__device__ Maps maps_of_blocks[(SIZE_M / BM) * (SIZE_N / BN)];

__device__ __forceinline__ void load_pair(double (&pair)[2], unsigned address) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(pair[0]), "=d"(pair[1]) : "r"(address) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
tensor_dgemm(const double* __restrict__ a, const double* __restrict__ b, double2* __restrict__ c) {
  extern __shared__ __align__(1024) char buffers[];
  const unsigned start = (shared_address(buffers) + 1023) & ~1023u;  // the swizzle counts from multiples of 1024 bytes
  const unsigned scratch = start + STAGES * STAGE;
  Ring<STAGES> ring(scratch + 2 * 128);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Cluster<CLUSTER_M, CLUSTER_N> cluster;
  Maps& maps = maps_of_blocks[blockIdx.x];

  if (threadIdx.x == 0) ring.make(WARPS * (CLUSTER_M + CLUSTER_N - 1));  // warps of all blocks that get what this one copies
  // To the copy engine a double is four halves.
  if (warp == 0) make_tensor_map(&maps.a, scratch, a, SIZE_K, 4 * SIZE_M, BK);
  if (warp == 1) make_tensor_map(&maps.b, scratch + 128, b, SIZE_N, 4 * SIZE_K, BN / CLUSTER_M);
  __syncthreads();
  meet_cluster();

  const auto place_of = [&](int tile) {  // in C
    const Tile of_cluster = tile_at<CLUSTERS_M, CLUSTERS_N, GROUP_M>(tile);
    return Tile{(of_cluster.row * CLUSTER_M + cluster.m) * BM, (of_cluster.column * CLUSTER_N + cluster.n) * BN};
  };
  const int clusters = gridDim.x / CLUSTER;

  if (warp >= WARPS) {
    give_registers<24>();
    if (warp == WARPS && lane == 0) {
      see_tensor_map(&maps.a);
      see_tensor_map(&maps.b);
      const unsigned long long policy = normal_policy();
      for (int tile = blockIdx.x / CLUSTER; tile < CLUSTERS_M * CLUSTERS_N; tile += clusters) {
        const Tile place = place_of(tile);
#pragma unroll 1
        for (int step = 0; step < STEPS; ++step) {
          const unsigned barrier = ring.fill(STAGE), tile_a = start + ring.stage * STAGE, tile_b = tile_a + TILE_A;
          for (int i = cluster.n; i < BM / 16; i += CLUSTER_N)
            cluster.load_a(tile_a + i * BOX, &maps.a, step * BK, 4 * (place.row + 16 * i), barrier, policy);
          const int part = cluster.m * (BN / CLUSTER_M);
          cluster.load_b(tile_b + part * 128, &maps.b, place.column + part, 4 * step * BK, barrier, policy);
          ring.next();
        }
      }
    }
  } else {
    take_registers<240>();
    const int warp_row = warp % WARPS_M * (BM / WARPS_M), warp_column = warp / WARPS_M * (BN / WARPS_N);
    // A buffer is released one step later, when what was read from it has been multiplied: an arrival at another block's barrier can
    // overtake reads that are still in flight.
    const auto release = [&](int which) {
      __syncwarp();
      cluster.release(ring.empty + 8 * which, lane);
    };
    // A thread's pairs: rows 2 g and 2 g + 1 of A in columns 2 q and 2 q + 1 of a step; rows 2 q and 2 q + 1 of B in column n, where
    // threads that read at once have columns whose swizzles differ in the half of 128 bytes.
    const int g = lane / 4, q = lane % 4, n = g % 2 * 4 + g / 2;
    const unsigned from_a[2] = {unsigned(2 * q * 128 + (g ^ 2 * q) * 16), unsigned((2 * q + 1) * 128 + (g ^ (2 * q + 1)) * 16)};
    const unsigned from_b[2] = {unsigned(n * 128 + (q ^ n) * 16), unsigned(n * 128 + (q ^ n ^ 4) * 16)};
    for (int tile = blockIdx.x / CLUSTER; tile < CLUSTERS_M * CLUSTERS_N; tile += clusters) {
      double sums[ROWS][COLUMNS][4] = {};
      int before = 0;
#pragma unroll 1
      for (int step = 0; step < STEPS; ++step) {
        ring.wait_until_full();
        if (step > 0) release(before);
        const unsigned tile_a = start + ring.stage * STAGE + warp_row / 16 * BOX, tile_b = start + ring.stage * STAGE + TILE_A + warp_column * 128;
#pragma unroll
        for (int k = 0; k < BK; k += DEPTH) {
          double y[COLUMNS][DEPTH / 8][2];
#pragma unroll
          for (int i = 0; i < COLUMNS; ++i)
#pragma unroll
            for (int j = 0; j < DEPTH / 8; ++j) load_pair(y[i][j], tile_b + i * (8 * 128) + from_b[k / 8 + j]);
#pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            double x[DEPTH / 4][2];
#pragma unroll
            for (int j = 0; j < DEPTH / 4; ++j) load_pair(x[j], tile_a + r * BOX + (k + j / 2 * 8) * 128 + from_a[j % 2]);
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) multiply(sums[r][i], x, y[i]);
          }
        }
        before = ring.stage;
        ring.next();
      }
      release(before);
      const Tile place = place_of(tile);
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i)
#pragma unroll
          for (int j = 0; j < 2; ++j)
            c[((size_t)(place.column + warp_column + i * 8 + j * 4 + q) * SIZE_M + place.row + warp_row + r * 16 + 2 * g) / 2] =
                make_double2(sums[r][i][j], sums[r][i][2 + j]);
    }
  }
  meet_cluster();  // no block ends while another may still send to it
}
