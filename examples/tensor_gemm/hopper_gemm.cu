// Matrix product C = A B^T with Hopper's warpgroup instructions, copy engine and clusters (compute capability 9.0a), CUDA.
// A is SIZE_M x SIZE_K, B is SIZE_N x SIZE_K, both of TYPE (0 FP16, 1 BF16, 2 FP8 E4M3), C is SIZE_M x SIZE_N of FP16, each row after row.
//
// A block has a warpgroup that copies (one of its threads does, with few registers) and CONSUMERS warpgroups that multiply, each
// BM / CONSUMERS rows of the block's tile. Steps of 128 bytes along K go through a ring of STAGES buffers: a row of a buffer is 128
// bytes in the 128-byte swizzle, which both the copy engine and wgmma know. Blocks of a cluster copy parts of what they
// share and send them to each other. Blocks take one tile after another (SPARE multiprocessors have none); results
// leave through shared memory while the next tile is copied. What can be tuned:
//   BM, BN                  tile of a block
//   CONSUMERS               warpgroups that multiply
//   STAGES                  buffers in the ring
//   CLUSTER_M, CLUSTER_N    blocks of a cluster along M (they share a tile of B) and along N (a tile of A)
//   GROUP_M                 clusters along M that run side by side before the next along N: what the L2 cache sees
//   BACK                    1: every other group goes back along N
//   EVICT                   what the L2 cache gives up: 0 no preference, 1 results first, 2 operands last as well
//   OUT_COLUMNS             columns of results that are in shared memory on their way out, at least 64 even where BN is less
//   SPARE                   multiprocessors without a block
//   PROMOTE                 steps after which sums are added to others in FP32 (0: never): tensor cores keep 14 bits of the sums of FP8
#ifndef TYPE
#define TYPE 0
#endif
#ifndef PROMOTE
#define PROMOTE 0
#endif
#define WGMMA_TYPE TYPE
#include "tensor.cuh"
#include "wgmma.cuh"
#include "hopper.cuh"

#define PAIRS_K (TYPE == E4M3 ? SIZE_K / 2 : SIZE_K)  // of bytes: copies do not depend on the type
#define BK 64                                  // of them in a step
#define THREADS (128 * (CONSUMERS + 1))
#define CLUSTER (CLUSTER_M * CLUSTER_N)
#define TILE_A (BM * 128)                      // bytes
#define STAGE ((BM + BN) * 128)
#define ROWS (BM / CONSUMERS / 64)             // of 64 x BN results of a consumer
#define STEPS (PAIRS_K / BK)
#define OUT (64 * 2 * OUT_COLUMNS)             // bytes of a consumer's results on their way
#define CLUSTERS_M (SIZE_M / (BM * CLUSTER_M))
#define CLUSTERS_N (SIZE_N / (BN * CLUSTER_N))
#define TILES (CLUSTERS_M * CLUSTERS_N)        // of clusters

struct Maps {
  TensorMap a, b, c;
};
__device__ Maps maps_of_blocks[(SIZE_M / BM) * (SIZE_N / BN)];

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
hopper_gemm(const char* __restrict__ a, const char* __restrict__ b, char* __restrict__ c) {
  extern __shared__ __align__(1024) char buffers[];
  const unsigned start = (shared_address(buffers) + 1023) & ~1023u;  // the swizzle counts from multiples of 1024 bytes
  const unsigned out = start + STAGES * STAGE, scratch = out + CONSUMERS * OUT;
  Ring<STAGES> ring(scratch + 3 * 128);
  const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const Cluster<CLUSTER_M, CLUSTER_N> cluster;
  Maps& maps = maps_of_blocks[blockIdx.x];

  if (threadIdx.x == 0) ring.make(CONSUMERS * (CLUSTER_M + CLUSTER_N - 1));  // consumers of all blocks that get what this one copies
  if (warpgroup == 0) {
    if (warp == 0) make_tensor_map(&maps.a, scratch, a, SIZE_M, PAIRS_K, BM / CLUSTER_N);
    if (warp == 1) make_tensor_map(&maps.b, scratch + 128, b, SIZE_N, PAIRS_K, BN / CLUSTER_M);
    if (warp == 2) make_tensor_map(&maps.c, scratch + 256, c, SIZE_M, SIZE_N, 64);
  }
  __syncthreads();
  meet_cluster();

  const int clusters = gridDim.x / CLUSTER;
  const auto place_of = [&](int tile) {  // in C
    const Tile of_cluster = tile_at<CLUSTERS_M, CLUSTERS_N, GROUP_M, BACK == 1>(tile);
    return Tile{(of_cluster.row * CLUSTER_M + cluster.m) * BM, (of_cluster.column * CLUSTER_N + cluster.n) * BN};
  };

  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) {
      see_tensor_map(&maps.a);
      see_tensor_map(&maps.b);
      const unsigned long long policy = EVICT == 2 ? last_policy() : normal_policy();
      for (int tile = blockIdx.x / CLUSTER; tile < TILES; tile += clusters) {
        const Tile place = place_of(tile);
#pragma unroll 1
        for (int step = 0; step < STEPS; ++step) {
          const unsigned barrier = ring.fill(STAGE), tile_a = start + ring.stage * STAGE, tile_b = tile_a + TILE_A;
          const int part_a = cluster.n * (BM / CLUSTER_N), part_b = cluster.m * (BN / CLUSTER_M);
          cluster.load_a(tile_a + part_a * 128, &maps.a, place.row + part_a, step * BK, barrier, policy);
          cluster.load_b(tile_b + part_b * 128, &maps.b, place.column + part_b, step * BK, barrier, policy);
          ring.next();
        }
      }
    }
  } else {
    take_registers<232>();
    const int consumer = __shfl_sync(~0u, warpgroup - 1, 0), thread = threadIdx.x % 128;  // the same in all lanes, as the compiler sees now
    const unsigned first_a = matrix_start(start + consumer * (ROWS * 64 * 128)), first_b = matrix_start(start + TILE_A);
    const unsigned mine = out + consumer * OUT;
    const auto release = [&](int which) { cluster.release(ring.empty + 8 * which, thread); };
    const unsigned long long policy = EVICT >= 1 ? first_policy() : normal_policy();
    if (thread == 0) see_tensor_map(&maps.c);
    float sums[ROWS][BN / 2];
#if PROMOTE > 0
    float parts[ROWS][BN / 2];
#else
    float(&parts)[ROWS][BN / 2] = sums;
#endif
    for (int tile = blockIdx.x / CLUSTER; tile < TILES; tile += clusters) {
      const Tile place = place_of(tile);
      int before = 0;
#pragma unroll
      for (int i = 0; i < ROWS * BN / 2 && PROMOTE > 0; ++i) sums[i / (BN / 2)][i % (BN / 2)] = 0;
#pragma unroll 1
      for (int step = 0; step < STEPS; ++step) {
        ring.wait_until_full();
        const unsigned tile_a = first_a + ring.stage * (STAGE / 16), tile_b = first_b + ring.stage * (STAGE / 16);
        const bool adds = PROMOTE > 0 ? step % PROMOTE > 0 : step > 0;
        begin_multiplications(parts);
#pragma unroll
        for (int k = 0; k < BK / 16; ++k)
#pragma unroll
          for (int r = 0; r < ROWS; ++r)
            multiply_async(parts[r], matrix_from(tile_a + r * (64 * 128 / 16) + k * 2), matrix_from(tile_b + k * 2), k > 0 || adds);
        commit_multiplications();
        if (PROMOTE > 0 && (step + 1) % PROMOTE == 0) {
          wait_for_multiplications<0>(parts);
#pragma unroll
          for (int i = 0; i < ROWS * BN / 2; ++i) sums[i / (BN / 2)][i % (BN / 2)] += parts[i / (BN / 2)][i % (BN / 2)];
        } else {
          wait_for_multiplications<1>(parts);
        }
        if (step > 0) release(before);
        before = ring.stage;
        ring.next();
      }
      wait_for_multiplications<0>(parts);
      release(before);

      // A warp has 16 rows of 64; a thread has pairs of columns in two of them, eight rows apart.
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int n = 0; n < BN; n += OUT_COLUMNS) {
          if (thread == 0) wait_for_stores();
          meet(1 + consumer, 128);
#pragma unroll
          for (int i = 0; i < min(OUT_COLUMNS, BN) / 16; ++i) {
            const float* s = &sums[r][(n + 16 * i) / 2];
            const int row = warp * 16 + lane % 16, piece = i % 4 * 2 + lane / 16;
            store_matrices(mine + i / 4 * (64 * 128) + row * 128 + (piece ^ row % 8) * 16, pack_halves(s[0], s[1]), pack_halves(s[2], s[3]),
                           pack_halves(s[4], s[5]), pack_halves(s[6], s[7]));
          }
          make_copies_visible();
          meet(1 + consumer, 128);
          if (thread == 0) {
#pragma unroll
            for (int i = 0; i < OUT_COLUMNS / 64; ++i)
              store_box(&maps.c, place.row + (consumer * ROWS + r) * 64, place.column + n + 64 * i, mine + i * (64 * 128), policy);
            commit_stores();
          }
        }
    }
    if (thread == 0) wait_for_stores();
  }
  meet_cluster();  // no block ends while another may still send to it
}
