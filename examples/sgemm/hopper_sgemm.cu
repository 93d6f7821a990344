// Single-precision matrix product C = A^T B with Hopper's copy engine and clusters (compute capability 9.0), CUDA. A is
// SIZE_K x SIZE_M, B is SIZE_K x SIZE_N, C is SIZE_N x SIZE_M, each row after row: what sgemm.cl computes on every GPU.
//
// The last four warps of a block copy (one of their threads does, with few registers), eight others multiply. Steps of BK along K go through a ring of STAGES
// buffers; operands of the next multiplication are read while the present one runs. Warps wait for data only, never for each other. Blocks
// of a cluster copy parts of what they share and send them to each other: the L2 cache is read less. Blocks take one tile after
// another; the next is copied while results leave. What can be tuned:
//   BM, BN, BK              tile of a block
//   TM, TN                  tile of a thread, in registers
//   WARP_M                  threads of a warp along M (of 32): how many read the same numbers at once
//   STAGES                  buffers in the ring
//   CLUSTER_M, CLUSTER_N    blocks of a cluster along M (they share a tile of B) and along N (a tile of A)
#include "tensor.cuh"
#include "hopper.cuh"

#define WARPS 8                               // that multiply
#define WARP_N (32 / WARP_M)
#define WARPS_ALONG_M (BM / (WARP_M * TM))
#define CLUSTER (CLUSTER_M * CLUSTER_N)
#define TILE_A (4 * BK * BM)                  // bytes
#define STAGE (4 * BK * (BM + BN))
#define STEPS (SIZE_K / BK)
#define CLUSTERS_M (SIZE_M / (BM * CLUSTER_M))
#define CLUSTERS_N (SIZE_N / (BN * CLUSTER_N))

struct Maps {
  TensorMap a, b;
};
__device__ Maps maps_of_blocks[(SIZE_M / BM) * (SIZE_N / BN)];

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 4), 1) __cluster_dims__(CLUSTER, 1, 1)
hopper_sgemm(const float* __restrict__ a, const float* __restrict__ b, float4* __restrict__ c) {
  extern __shared__ __align__(128) char buffers[];
  const unsigned start = shared_address(buffers), scratch = start + STAGES * STAGE;
  Ring<STAGES> ring(scratch + 2 * 128);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Cluster<CLUSTER_M, CLUSTER_N> cluster;
  Maps& maps = maps_of_blocks[blockIdx.x];

  if (threadIdx.x == 0) ring.make(WARPS * (CLUSTER_M + CLUSTER_N - 1));  // warps of all blocks that get what this one copies
  if (warp == 0) make_tensor_map<true>(&maps.a, scratch, a, SIZE_K, SIZE_M, BK / CLUSTER_N, BM);
  if (warp == 1) make_tensor_map<true>(&maps.b, scratch + 128, b, SIZE_K, SIZE_N, BK / CLUSTER_M, BN);
  __syncthreads();
  meet_cluster();

  const auto place_of = [&](int tile) {  // in C
    const Tile of_cluster = tile_at<CLUSTERS_M, CLUSTERS_N, 8>(tile);
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
          const int part_a = cluster.n * (BK / CLUSTER_N), part_b = cluster.m * (BK / CLUSTER_M);
          cluster.load_a(tile_a + part_a * BM * 4, &maps.a, step * BK + part_a, place.row, barrier, policy);
          cluster.load_b(tile_b + part_b * BN * 4, &maps.b, step * BK + part_b, place.column, barrier, policy);
          ring.next();
        }
      }
    }
  } else {
    take_registers<240>();
    const auto release = [&](int which) {
      __syncwarp();
      cluster.release(ring.empty + 8 * which, lane);
    };
    // Vectors of four numbers; those of a warp's row lie side by side.
    const int first_m = warp % WARPS_ALONG_M * (WARP_M * TM / 4) + lane % WARP_M;
    const int first_n = warp / WARPS_ALONG_M * (WARP_N * TN / 4) + lane / WARP_M;
    float4 x[2][TM / 4], y[2][TN / 4];
    const auto read_operands = [&](int set, int k) {
      const float4* tile_a = reinterpret_cast<const float4*>(buffers + ring.stage * STAGE) + first_m + k * (BM / 4);
      const float4* tile_b = reinterpret_cast<const float4*>(buffers + ring.stage * STAGE + TILE_A) + first_n + k * (BN / 4);
#pragma unroll
      for (int i = 0; i < TM / 4; ++i) x[set][i] = tile_a[i * WARP_M];
#pragma unroll
      for (int i = 0; i < TN / 4; ++i) y[set][i] = tile_b[i * WARP_N];
    };
    for (int tile = blockIdx.x / CLUSTER; tile < CLUSTERS_M * CLUSTERS_N; tile += clusters) {
      float4 sum[TN][TM / 4] = {};
      int before = 0;
      ring.wait_until_full();
      read_operands(0, 0);
#pragma unroll 1
      for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
          if (k < BK - 1) {
            read_operands((k + 1) % 2, k + 1);
          } else {
            before = ring.stage;
            ring.next();
            if (step + 1 < STEPS) {
              ring.wait_until_full();
              read_operands(0, 0);
            }
          }
          // One step later, when what was read from the buffer has been multiplied: an arrival at another block's barrier can overtake
          // reads that are still in flight.
          if (k == 2 && step > 0) release(before);
#pragma unroll
          for (int n = 0; n < TN; ++n) {
            const float4 four = y[k % 2][n / 4];
            const float factor = n % 4 == 0 ? four.x : n % 4 == 1 ? four.y : n % 4 == 2 ? four.z : four.w;
#pragma unroll
            for (int m = 0; m < TM / 4; ++m) {
              sum[n][m].x = __fmaf_rn(x[k % 2][m].x, factor, sum[n][m].x);
              sum[n][m].y = __fmaf_rn(x[k % 2][m].y, factor, sum[n][m].y);
              sum[n][m].z = __fmaf_rn(x[k % 2][m].z, factor, sum[n][m].z);
              sum[n][m].w = __fmaf_rn(x[k % 2][m].w, factor, sum[n][m].w);
            }
          }
        }
      }
      const Tile place = place_of(tile);
#pragma unroll
      for (int n = 0; n < TN; ++n)
#pragma unroll
        for (int m = 0; m < TM / 4; ++m)
          c[(size_t)(place.column + 4 * (first_n + n / 4 * WARP_N) + n % 4) * (SIZE_M / 4) + place.row / 4 + first_m + m * WARP_M] = sum[n][m];
      release(before);
    }
  }
  meet_cluster();  // no block ends while another may still send to it
}
