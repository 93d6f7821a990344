// Attention, forward, after FlashAttention (Dao 2023): for each head, out = softmax(Q K^T / sqrt(DEPTH)) V, halves in and out,
// without ever storing the matrix of scores. On tensor cores (mma.sync, compute capability 8.0 and up), CUDA.
// Q, K, V and out are HEADS x LENGTH x DEPTH; with CAUSAL = 1 a query sees only keys up to its own place.
//
// A warp keeps 16 queries; keys and values come in blocks of BLOCK_N through shared memory, copied asynchronously. Maximum
// and sum of a row are kept as they grow, and what was summed before is scaled. What can be tuned:
//   WARPS            warps of a block: 16 queries each
//   BLOCK_N          keys at once
//   STAGES           blocks of keys and values in shared memory: one is used, the others are on their way
//   Q_IN_REGISTERS   1: queries stay in registers, 0: they are read from shared memory for every block of keys
//   MIN_BLOCKS       blocks per multiprocessor that the compiler has to leave registers for
#include "tensor.cuh"

#define THREADS (32 * WARPS)
#define BLOCK_M (16 * WARPS)
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

  float sums[DEPTH / 8][4] = {}, largest[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
  const float scale = LOG2_E * rsqrtf((float)DEPTH);
#if Q_IN_REGISTERS == 1
  unsigned query[DEPTH / 16][4];
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
      for (int d = 0; d < DEPTH / 16; ++d)
        load_matrices(query[d], queries + offset_of(warp * 16 + lane % 16, 2 * d + lane / 16));
#endif

    float scores[BLOCK_N / 8][4] = {};
#pragma unroll
    for (int d = 0; d < DEPTH / 16; ++d) {
#if Q_IN_REGISTERS == 1
      const unsigned (&x)[4] = query[d];
#else
      unsigned x[4];
      load_matrices(x, queries + offset_of(warp * 16 + lane % 16, 2 * d + lane / 16));
#endif
#pragma unroll
      for (int n = 0; n < BLOCK_N / 16; ++n) {
        unsigned y[4];
        load_matrices(y, keys + offset_of(n * 16 + lane % 8 + lane / 16 * 8, 2 * d + lane / 8 % 2));
        multiply(scores[2 * n], x, y[0], y[1]);
        multiply(scores[2 * n + 1], x, y[2], y[3]);
      }
    }

    if (CAUSAL && (block + 1) * BLOCK_N > first + warp * 16)
#pragma unroll
      for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (block * BLOCK_N + n * 8 + lane % 4 * 2 + i % 2 > first + warp * 16 + lane / 4 + i / 2 * 8) scores[n][i] = -1e30f;

#pragma unroll
    for (int half = 0; half < 2; ++half) {  // the two rows of a thread
      float now = largest[half];
#pragma unroll
      for (int n = 0; n < BLOCK_N / 8; ++n) now = fmaxf(now, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      now = row_max(now);
      const float shrink = exp2_of((largest[half] - now) * scale);
      largest[half] = now;
      total[half] *= shrink;
#pragma unroll
      for (int d = 0; d < DEPTH / 8; ++d) sums[d][2 * half] *= shrink, sums[d][2 * half + 1] *= shrink;
#pragma unroll
      for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2_of((scores[n][i] - now) * scale);
          total[half] += scores[n][i];
        }
    }

    // What came out as results of the first product goes in as the left operand of the second.
#pragma unroll
    for (int n = 0; n < BLOCK_N / 16; ++n) {
      const unsigned weights[4] = {
          pack_halves(scores[2 * n][0], scores[2 * n][1]), pack_halves(scores[2 * n][2], scores[2 * n][3]),
          pack_halves(scores[2 * n + 1][0], scores[2 * n + 1][1]), pack_halves(scores[2 * n + 1][2], scores[2 * n + 1][3])};
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d) {
        unsigned y[4];
        load_matrices_transposed(y, values + offset_of(n * 16 + lane % 16, 2 * d + lane / 16));
        multiply(sums[2 * d], weights, y[0], y[1]);
        multiply(sums[2 * d + 1], weights, y[2], y[3]);
      }
    }
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float factor = 1.0f / row_sum(total[half]);
    const int row = first + warp * 16 + lane / 4 + half * 8;
#pragma unroll
    for (int d = 0; d < DEPTH / 8; ++d)
      out[(head + (size_t)row * ROW_BYTES) / 4 + d * 4 + lane % 4] =
          pack_halves(sums[d][2 * half] * factor, sums[d][2 * half + 1] * factor);
  }
}
