// Attention, forward, after FlashAttention (Dao 2023): for each head, out = softmax(Q K^T / sqrt(DEPTH)) V, halves in and out,
// without ever storing the matrix of scores. On tensor cores (mma.sync, compute capability 8.0 and up), CUDA.
// Q, K, V and out are HEADS x LENGTH x DEPTH; with CAUSAL = 1 a query sees only keys up to its own place.
//
// A warp keeps 16 queries or 32; keys and values come in blocks of BLOCK_N through shared memory, copied asynchronously. Maximum
// and sum of a row are kept as they grow, and what was summed before is scaled. What can be tuned:
//   WARPS            warps of a block
//   QUERY_TILES      of 16 queries in a warp: with two, what is read of keys and values serves twice
//   BLOCK_N          keys at once
//   STAGES           blocks of keys and values in shared memory: one is used, the others are on their way
//   Q_IN_REGISTERS   1: queries stay in registers, 0: they are read from shared memory for every block of keys
//   MIN_BLOCKS       blocks per multiprocessor that the compiler has to leave registers for
#include "tensor.cuh"

#define THREADS (32 * WARPS)
#define WARP_ROWS (16 * QUERY_TILES)
#define BLOCK_M (WARP_ROWS * WARPS)
#define PIECES (DEPTH / 8)              // of 16 bytes in a row
#define ROW_BYTES (2 * DEPTH)
#define TILE (BLOCK_N * ROW_BYTES)      // bytes of a block of keys, or of values
#define LOG2_E 1.44269504f

__device__ __forceinline__ unsigned offset_of(int row, int piece) { return row * ROW_BYTES + (piece ^ row % 8) * 16; }

template <int count>
__device__ __forceinline__ void load_rows(unsigned to, const char* from) {
#pragma unroll
  for (int i = 0; i < count * PIECES / THREADS; ++i) {
    const int k = threadIdx.x + i * THREADS;
    copy_async(to + offset_of(k / PIECES, k % PIECES), from + k * 16);
  }
}

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The largest, or the sum, over the four threads that share a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFFu, x, 2);
}

// One row of a tile, of the two that a thread has a part of: scores become weights, and what was summed before is scaled to them.
__device__ __forceinline__ void weigh(float (&scores)[BLOCK_N / 8][4], float (&sums)[DEPTH / 8][4], float& largest, float& total,
                                      int half, float scale) {
  float now = largest;
#pragma unroll
  for (int n = 0; n < BLOCK_N / 8; ++n) now = fmaxf(now, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
  now = row_max(now);
  const float shrink = exp2_of((largest - now) * scale);
  largest = now;
  total *= shrink;
#pragma unroll
  for (int d = 0; d < DEPTH / 8; ++d) sums[d][2 * half] *= shrink, sums[d][2 * half + 1] *= shrink;
  const float offset = now * scale;
#pragma unroll
  for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float& score = scores[n][2 * half + i];
      score = exp2_of(__fmaf_rn(score, scale, -offset));
      total += score;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
attention(const char* __restrict__ q, const char* __restrict__ k, const char* __restrict__ v, unsigned* __restrict__ out) {
  extern __shared__ __align__(128) char room[];
  const unsigned queries = shared_address(room), ring = queries + BLOCK_M * ROW_BYTES;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = blockIdx.x * BLOCK_M;
  const size_t head = (size_t)blockIdx.y * LENGTH * ROW_BYTES;
  const int blocks = CAUSAL ? (first + BLOCK_M + BLOCK_N - 1) / BLOCK_N : LENGTH / BLOCK_N;

  int use = 0, fill = 0;  // stages of the ring
  const auto load = [&](int block) {
    if (block < blocks) {
      const unsigned stage = ring + fill * (2 * TILE);
      fill = fill + 1 == STAGES ? 0 : fill + 1;
      load_rows<BLOCK_N>(stage, k + head + (size_t)block * TILE);
      load_rows<BLOCK_N>(stage + TILE, v + head + (size_t)block * TILE);
    }
    commit_copies();
  };
  load_rows<BLOCK_M>(queries, q + head + (size_t)first * ROW_BYTES);
  for (int block = 0; block < STAGES - 1; ++block) load(block);

  float sums[QUERY_TILES][DEPTH / 8][4] = {}, total[QUERY_TILES][2] = {}, largest[QUERY_TILES][2];
#pragma unroll
  for (int t = 0; t < QUERY_TILES; ++t) largest[t][0] = largest[t][1] = -1e30f;
  const float scale = LOG2_E * rsqrtf((float)DEPTH);
#if Q_IN_REGISTERS == 1
  unsigned query[QUERY_TILES][DEPTH / 16][4];
#endif

#pragma unroll 1
  for (int block = 0; block < blocks; ++block) {
    __syncthreads();  // nobody reads the stage that is filled next
    load(block + STAGES - 1);
    wait_for_copies<STAGES - 1>();
    __syncthreads();
    const unsigned keys = ring + use * (2 * TILE), values = keys + TILE;
    use = use + 1 == STAGES ? 0 : use + 1;
#if Q_IN_REGISTERS == 1
    if (block == 0)
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t)
#pragma unroll
        for (int d = 0; d < DEPTH / 16; ++d)
          load_matrices(query[t][d], queries + offset_of(warp * WARP_ROWS + t * 16 + lane % 16, 2 * d + lane / 16));
#endif

    float scores[QUERY_TILES][BLOCK_N / 8][4] = {};
#pragma unroll
    for (int d = 0; d < DEPTH / 16; ++d) {
#if Q_IN_REGISTERS == 1
#define QUERY(t) query[t][d]
#else
#define QUERY(t) x[t]
      unsigned x[QUERY_TILES][4];
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t)
        load_matrices(x[t], queries + offset_of(warp * WARP_ROWS + t * 16 + lane % 16, 2 * d + lane / 16));
#endif
#pragma unroll
      for (int n = 0; n < BLOCK_N / 16; ++n) {
        unsigned y[4];
        load_matrices(y, keys + offset_of(n * 16 + lane % 8 + lane / 16 * 8, 2 * d + lane / 8 % 2));
#pragma unroll
        for (int t = 0; t < QUERY_TILES; ++t) {
          multiply(scores[t][2 * n], QUERY(t), y[0], y[1]);
          multiply(scores[t][2 * n + 1], QUERY(t), y[2], y[3]);
        }
      }
    }

#pragma unroll
    for (int t = 0; t < QUERY_TILES; ++t) {
      const int rows = first + warp * WARP_ROWS + t * 16;
      if (CAUSAL && (block + 1) * BLOCK_N > rows)
#pragma unroll
        for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (block * BLOCK_N + n * 8 + lane % 4 * 2 + i % 2 > rows + lane / 4 + i / 2 * 8) scores[t][n][i] = -1e30f;
#pragma unroll
      for (int half = 0; half < 2; ++half)  // the two rows of a thread
        weigh(scores[t], sums[t], largest[t][half], total[t][half], half, scale);
    }

    // What came out as results of the first product goes in as the left operand of the second.
#pragma unroll
    for (int n = 0; n < BLOCK_N / 16; ++n) {
      unsigned weights[QUERY_TILES][4];
#pragma unroll
      for (int t = 0; t < QUERY_TILES; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weights[t][i] = pack_halves(scores[t][2 * n + i / 2][i % 2 * 2], scores[t][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d) {
        unsigned y[4];
        load_matrices_transposed(y, values + offset_of(n * 16 + lane % 16, 2 * d + lane / 16));
#pragma unroll
        for (int t = 0; t < QUERY_TILES; ++t) {
          multiply(sums[t][2 * d], weights[t], y[0], y[1]);
          multiply(sums[t][2 * d + 1], weights[t], y[2], y[3]);
        }
      }
    }
  }

#pragma unroll
  for (int t = 0; t < QUERY_TILES; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = 1.0f / row_sum(total[t][half]);
      const int row = first + warp * WARP_ROWS + t * 16 + lane / 4 + half * 8;
#pragma unroll
      for (int d = 0; d < DEPTH / 8; ++d)
        out[(head + (size_t)row * ROW_BYTES) / 4 + d * 4 + lane % 4] =
            pack_halves(sums[t][d][2 * half] * factor, sums[t][d][2 * half + 1] * factor);
    }
}
