// Attention, forward, with Hopper's warpgroup instructions and copy engine (compute capability 9.0a), CUDA: for each head, out =
// softmax(Q K^T / sqrt(DEPTH)) V, halves in and out, after FlashAttention-3 (Shah et al. 2024). Q, K, V and out are
// HEADS x LENGTH x DEPTH (64 or 128); with CAUSAL = 1 a query sees only keys up to its own place.
//
// A block has a warpgroup that copies (one of its threads does) and CONSUMERS warpgroups of 64 queries each. Blocks of BLOCK_N keys, and
// of as many values, come through a ring of STAGES buffers. While a warpgroup computes the weights of one block of keys, its scores
// of the next and the sum over the block before are on the tensor cores; with PING_PONG = 1 warpgroups take turns, so that one has
// them while another computes weights. What can be tuned:
//   CONSUMERS        warpgroups that multiply; a block has 64 queries of each
//   BLOCK_N          keys at once
//   STAGES           buffers of keys or values in shared memory
//   PING_PONG        1: warpgroups take turns on the tensor cores
//   HEADS_FIRST      1: blocks of queries of one head run side by side, 0: the same block of queries of all heads
#include "tensor.cuh"
#include "wgmma.cuh"
#include "hopper.cuh"

#define THREADS (128 * (CONSUMERS + 1))
#define BLOCK_M (64 * CONSUMERS)
#define HALVES (DEPTH / 64)                    // of 64 columns, 128 bytes
#define QUERIES (BLOCK_M * DEPTH * 2)          // bytes of a block of queries
#define STAGE (BLOCK_N * DEPTH * 2)            // bytes of a block of keys, or of values
#define TILES_M (LENGTH / BLOCK_M)
#define TILES (TILES_M * HEADS)
#define LOG2_E 1.44269504f
#define LEAST __int_as_float(0xFF800000)        // minus infinity

struct Maps {
  TensorMap q, k, v, out;
};
__device__ Maps maps_of_blocks[TILES];

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

struct Work {
  int row, head, blocks;  // first query, and how many blocks of keys it needs
};
__device__ __forceinline__ Work work_of(int tile) {
  const int column = HEADS_FIRST ? tile % TILES_M : tile / HEADS, head = HEADS_FIRST ? tile / TILES_M : tile % HEADS;
  const int row = (CAUSAL ? TILES_M - 1 - column : column) * BLOCK_M;  // the longest first
  return {row, head, CAUSAL ? (row + BLOCK_M + BLOCK_N - 1) / BLOCK_N : LENGTH / BLOCK_N};
}

// Scores of a block become weights that are not yet divided by their sum. A thread has two rows. Returns by what earlier sums shrink.
__device__ __forceinline__ void weigh(float (&scores)[BLOCK_N / 2], float (&largest)[2], float (&total)[2], float (&shrink)[2]) {
  const float scale = LOG2_E * rsqrtf((float)DEPTH);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float now = largest[half];
#pragma unroll
    for (int n = 0; n < BLOCK_N / 8; ++n) now = fmaxf(now, fmaxf(scores[4 * n + 2 * half], scores[4 * n + 2 * half + 1]));
    now = row_max(now);
    const float offset = now == LEAST ? 0.0f : now * scale;
    shrink[half] = exp2_of(largest[half] * scale - offset);
    largest[half] = now;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& score = scores[4 * n + 2 * half + i];
        score = exp2_of(__fmaf_rn(score, scale, -offset));
        sum += score;
      }
    total[half] = total[half] * shrink[half] + sum;
  }
}

// No query of this warp sees a key after it.
__device__ __forceinline__ void hide_later_keys(float (&scores)[BLOCK_N / 2], int first_row, int first_key) {
  const int row = first_row + threadIdx.x % 32 / 4, key = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < BLOCK_N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (key + 8 * n + i % 2 > row + i / 2 * 8) scores[4 * n + i] = LEAST;
}

__device__ __forceinline__ void pack_weights(unsigned (&weights)[BLOCK_N / 16][4], const float (&scores)[BLOCK_N / 2]) {
#pragma unroll
  for (int n = 0; n < BLOCK_N / 16; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) weights[n][i] = pack_halves(scores[8 * n + 2 * i], scores[8 * n + 2 * i + 1]);
}

// The tensor cores read weights while other work goes on.
__device__ __forceinline__ void hold_weights(unsigned (&weights)[BLOCK_N / 16][4]) {
#pragma unroll
  for (int n = 0; n < BLOCK_N / 16; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(weights[n][i])::"memory");
}

// Results of one product are held as those of many are.
template <int count>
__device__ __forceinline__ float (&one_row(float (&sums)[count]))[1][count] {
  return reinterpret_cast<float(&)[1][count]>(sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hopper_attention(const char* __restrict__ q, const char* __restrict__ k, const char* __restrict__ v, char* __restrict__ out) {
  extern __shared__ __align__(1024) char start[];
  const unsigned queries = (shared_address(start) + 1023) & ~1023u, ring = queries + QUERIES, scratch = ring + STAGES * STAGE;
  const unsigned full = scratch + 4 * 128, empty = full + 8 * STAGES, queries_full = empty + 8 * STAGES, queries_empty = queries_full + 8;
  const int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  Maps& maps = maps_of_blocks[blockIdx.x];

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) make_barrier(full + 8 * s, 1), make_barrier(empty + 8 * s, CONSUMERS);
    make_barrier(queries_full, 1);
    make_barrier(queries_empty, CONSUMERS);
    show_barriers();
  }
  if (warpgroup == 0) {
    if (warp == 0) make_tensor_map(&maps.q, scratch, q, HEADS * LENGTH, DEPTH, BLOCK_M);
    if (warp == 1) make_tensor_map(&maps.k, scratch + 128, k, HEADS * LENGTH, DEPTH, BLOCK_N);
    if (warp == 2) make_tensor_map(&maps.v, scratch + 256, v, HEADS * LENGTH, DEPTH, BLOCK_N);
    if (warp == 3) make_tensor_map(&maps.out, scratch + 384, out, HEADS * LENGTH, DEPTH, 64);
  }
  __syncthreads();

  int stage = 0, phase = 0, queries_phase = 0;
  const auto next = [&] {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  };

  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) {
      see_tensor_map(&maps.q);
      see_tensor_map(&maps.k);
      see_tensor_map(&maps.v);
      const unsigned long long policy = normal_policy();
      const auto load = [&](const TensorMap* map, int row) {
        wait_for_phase(empty + 8 * stage, phase ^ 1);
        arrive_and_expect(full + 8 * stage, STAGE);
        for (int h = 0; h < HALVES; ++h) load_box(ring + stage * STAGE + h * (BLOCK_N * 128), map, row, 64 * h, full + 8 * stage, policy);
        next();
      };
      for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
        const Work work = work_of(tile);
        const int keys = work.head * LENGTH;
        wait_for_phase(queries_empty, queries_phase ^ 1);
        arrive_and_expect(queries_full, QUERIES);
        for (int h = 0; h < HALVES; ++h)
          load_box(queries + h * (BLOCK_M * 128), &maps.q, keys + work.row, 64 * h, queries_full, policy);
        queries_phase ^= 1;
        load(&maps.k, keys + (work.blocks - 1) * BLOCK_N);
#pragma unroll 1
        for (int block = work.blocks - 1; block > 0; --block) {
          load(&maps.k, keys + (block - 1) * BLOCK_N);
          load(&maps.v, keys + block * BLOCK_N);
        }
        load(&maps.v, keys);
      }
    }
  } else {
    take_registers<240>();
    const int consumer = __shfl_sync(~0u, warpgroup - 1, 0), thread = threadIdx.x % 128;  // the same in all lanes, as the compiler sees now
    const unsigned mine = queries + consumer * (64 * 128);
    const unsigned first_query = matrix_start(mine), first_key = matrix_start(ring), first_value = matrix_start(ring, BLOCK_N * 128);
    if (thread == 0) see_tensor_map(&maps.out);
    const auto release = [&](unsigned barrier) {
      if (thread == 0) arrive(barrier);
    };
    // The turns: a warpgroup waits for its own and then lets the one after it pass.
    if (PING_PONG && consumer == CONSUMERS - 1) let_pass(8, 256);
    const auto take_turn = [&] {
      if (PING_PONG) meet(8 + consumer, 256);
    };
    const auto end_turn = [&] {
      if (PING_PONG) let_pass(8 + (consumer + 1) % CONSUMERS, 256);
    };

    float sums[DEPTH / 2], scores[BLOCK_N / 2];
    unsigned weights[BLOCK_N / 16][4];
    const auto multiply_keys = [&](int keys) {
      const unsigned first = first_key + keys * (STAGE / 16);
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d)
        multiply_async(scores, matrix_from(first_query + d / 4 * (BLOCK_M * 128 / 16) + d % 4 * 2),
                       matrix_from(first + d / 4 * (BLOCK_N * 128 / 16) + d % 4 * 2), d);
      commit_multiplications();
    };
    const auto multiply_values = [&](int values, int add) {
      const unsigned first = first_value + values * (STAGE / 16);
#pragma unroll
      for (int n = 0; n < BLOCK_N / 16; ++n)
        multiply_async(sums, weights[n], matrix_from(first + n * (16 * 128 / 16)), n > 0 || add);
      commit_multiplications();
    };

    for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
      const Work work = work_of(tile);
      const int first_row = work.row + consumer * 64 + warp * 16;
      float largest[2] = {LEAST, LEAST}, total[2] = {}, shrink[2];
      int block = work.blocks - 1;
      const auto prepare = [&] {
        if (CAUSAL && (block + 1) * BLOCK_N > first_row) hide_later_keys(scores, first_row, block * BLOCK_N);
        weigh(scores, largest, total, shrink);
      };

      wait_for_phase(queries_full, queries_phase);
      queries_phase ^= 1;
      wait_for_phase(full + 8 * stage, phase);
      take_turn();
      begin_multiplications(one_row(scores));
      multiply_keys(stage);
      end_turn();
      wait_for_multiplications<0>(one_row(scores));
      release(empty + 8 * stage);
      next();
      prepare();
      pack_weights(weights, scores);
      int add = 0;
      wait_for_phase(full + 8 * stage, phase);
#pragma unroll 1
      for (; block > 0;) {
        const int keys = stage;
        next();
        take_turn();
        hold(one_row(sums));
        hold_weights(weights);
        begin_multiplications(one_row(scores));
        multiply_keys(keys);
        const int values = stage;
        wait_for_phase(full + 8 * stage, phase);
        next();
        multiply_values(values, add);
        end_turn();
        wait_for_multiplications<1>(one_row(scores));
        release(empty + 8 * keys);
        --block;
        add = 1;
        prepare();
        // What is next in the ring: the loop of this wait keeps the compiler from waiting for the sums before it computes the weights.
        wait_for_phase(full + 8 * stage, phase);
        wait_for_multiplications<0>(one_row(sums));
        release(empty + 8 * values);
#pragma unroll
        for (int d = 0; d < DEPTH / 2; ++d) sums[d] *= shrink[d / 2 % 2];
        pack_weights(weights, scores);
      }
      hold_weights(weights);
      begin_multiplications(one_row(sums));
      multiply_values(stage, add);
      wait_for_multiplications<0>(one_row(sums));
      release(empty + 8 * stage);
      next();

      // Out goes where this warpgroup's queries were.
      const float factor[2] = {1.0f / row_sum(total[0]), 1.0f / row_sum(total[1])};
#pragma unroll
      for (int i = 0; i < DEPTH / 16; ++i) {
        const float* s = &sums[8 * i];
        const int row = warp * 16 + lane % 16, piece = i % 4 * 2 + lane / 16;
        store_matrices(mine + i / 4 * (BLOCK_M * 128) + row * 128 + (piece ^ row % 8) * 16, pack_halves(s[0] * factor[0], s[1] * factor[0]),
                       pack_halves(s[2] * factor[1], s[3] * factor[1]), pack_halves(s[4] * factor[0], s[5] * factor[0]),
                       pack_halves(s[6] * factor[1], s[7] * factor[1]));
      }
      make_copies_visible();
      meet(1 + consumer, 128);
      if (thread == 0) {
        for (int h = 0; h < HALVES; ++h)
          store_box(&maps.out, work.head * LENGTH + work.row + consumer * 64, 64 * h, mine + h * (BLOCK_M * 128), normal_policy());
        commit_stores();
        wait_for_stores();
        arrive(queries_empty);
      }
    }
  }
}
