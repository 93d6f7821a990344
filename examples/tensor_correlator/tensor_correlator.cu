// Correlator on tensor cores (the idea is Romein's, 2021; mma.sync, compute capability 8.0 and up), CUDA: for all pairs of
// receivers i <= j
//   out[c][b][p][q] = sum over t of in[i][t][p] * conj(in[j][t][q]),  b = j (j + 1) / 2 + i
// Samples are complex, of halves (BITS = 16) or bytes (BITS = 8, without -128), in the order
// [channel][time / TIMES][receiver][polarisation][TIMES][re, im], TIMES = 128 / BITS, so that a row of a chunk has 32 bytes; sums
// are floats or whole numbers.
//
// As a real matrix product: a row is (re, im) of one receiver and polarisation over all times, just as it stands in memory.
// Row times row gives the real part; the imaginary part needs the right one as (-im, re), which is an exchange and a change
// of sign in registers. What can be tuned:
//   NR_RECEIVERS_PER_BLOCK   a block correlates as many receivers with as many others
//   WARPS_M, WARPS_N         its warps
//   CHUNKS                   of TIMES times in shared memory at once
//   STAGES                   of them on their way
//   PORTABLE                 1: results reach memory by way of shared memory, 256 bytes in order for one receiver j; 0: straight
//                            from registers, 128 bytes
#include "tensor.cuh"

#define THREADS (32 * WARPS_M * WARPS_N)
#define SIDE (2 * NR_RECEIVERS_PER_BLOCK)     // rows of a block
#define BLOCKS (RECEIVERS / NR_RECEIVERS_PER_BLOCK)
#define TIMES (128 / BITS)
#define CHUNK (SIDE * 32)                     // bytes: TIMES complex samples of each row
#define STAGE (2 * CHUNKS * CHUNK)
#define ROWS (SIDE / WARPS_M / 16)            // of 16 x 8 results of a warp
#define COLUMNS (SIDE / WARPS_N / 8)
#define STEPS (SAMPLES / (TIMES * CHUNKS))

// Rows of 32 bytes: halves of every second four are exchanged, so that eight rows lie in different banks.
__device__ __forceinline__ unsigned offset_of(int row, int piece) { return row * 32 + (piece ^ row / 4 % 2) * 16; }

// (re, im) -> (-im, re): of one sample of halves, or of two of bytes.
#if BITS == 16
typedef float Sum;
typedef float4 Result;
__device__ __forceinline__ unsigned turned(unsigned complex) { return __byte_perm(complex, 0, 0x1032) ^ 0x00008000u; }
#else
typedef int Sum;
typedef int4 Result;
__device__ __forceinline__ unsigned turned(unsigned complex) {
  const unsigned exchanged = __byte_perm(complex, 0, 0x2301);
  const unsigned negative = (~exchanged & 0x00FF00FFu) + 0x00010001u;  // of the even bytes; a carry ends in the odd ones
  return (exchanged & 0xFF00FF00u) | (negative & 0x00FF00FFu);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
tensor_correlator(const char* __restrict__ in, Result* __restrict__ out) {
  extern __shared__ __align__(128) char ring[];
  const unsigned shared = shared_address(ring);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp % WARPS_M * (SIDE / WARPS_M), warp_column = warp / WARPS_M * (SIDE / WARPS_N);
  int block_j = (int)((sqrtf(8.0f * blockIdx.x + 1.0f) - 1.0f) / 2.0f);
  if (block_j * (block_j + 1) / 2 > blockIdx.x) --block_j;
  if ((block_j + 1) * (block_j + 2) / 2 <= blockIdx.x) ++block_j;
  const int block_i = blockIdx.x - block_j * (block_j + 1) / 2, channel = blockIdx.y;
  const char* const samples = in + (size_t)channel * (SAMPLES / TIMES) * (RECEIVERS * 64);

  const auto load = [&](int step) {
    if (step < STEPS) {
#pragma unroll
      for (int i = 0; i < STAGE / 16 / THREADS; ++i) {
        const int k = threadIdx.x + i * THREADS, chunk = k / (2 * SIDE) % CHUNKS, row = k / 2 % SIDE, right = k / (2 * SIDE * CHUNKS);
        copy_async(shared + step % STAGES * STAGE + (right * CHUNKS + chunk) * CHUNK + offset_of(row, k % 2),
                   samples + ((size_t)(step * CHUNKS + chunk) * (2 * RECEIVERS) + (right ? block_j : block_i) * SIDE + row) * 32 +
                       k % 2 * 16);
      }
    }
    commit_copies();
  };
  for (int step = 0; step < STAGES - 1; ++step) load(step);

  Sum re[ROWS][COLUMNS][4] = {}, im[ROWS][COLUMNS][4] = {};
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    load(step + STAGES - 1);
    const unsigned left = shared + step % STAGES * STAGE, right = left + CHUNKS * CHUNK;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      unsigned x[ROWS][4], y[COLUMNS / 2][4];
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        load_matrices(x[r], left + chunk * CHUNK + offset_of(warp_row + r * 16 + lane % 16, lane / 16));
#pragma unroll
      for (int n = 0; n < COLUMNS / 2; ++n)
        load_matrices(y[n], right + chunk * CHUNK + offset_of(warp_column + n * 16 + lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll
      for (int n = 0; n < COLUMNS; ++n) {
        const unsigned y0 = y[n / 2][n % 2 * 2], y1 = y[n / 2][n % 2 * 2 + 1], z0 = turned(y0), z1 = turned(y1);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          multiply(re[r][n], x[r], y0, y1);
          multiply(im[r][n], x[r], z0, z1);
        }
      }
    }
  }

  const auto write = [&](int row, int column, Result result) {
    const int i = row / 2, j = column / 2;
    if (i <= j) out[((size_t)channel * (RECEIVERS * (RECEIVERS + 1) / 2) + j * (j + 1) / 2 + i) * 2 + row % 2] = result;
  };
  const int first_row = block_i * SIDE + warp_row, first_column = block_j * SIDE + warp_column;
#if PORTABLE
  // A warp's 16 x 8 results in turn, each (re, im), in the place of samples that all warps have read.
  wait_for_copies<0>();
  __syncthreads();
  Sum* const tile = reinterpret_cast<Sum*>(ring) + warp * 256;
#endif
  // A thread has columns q = 0, 1 of one receiver j in rows that are eight apart; a baseline is two rows by two columns.
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n) {
#if PORTABLE
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int place = (k / 2 * 8 + lane / 4) * 8 + lane % 4 * 2 + k % 2;
        tile[2 * place] = re[r][n][k];
        tile[2 * place + 1] = im[r][n][k];
      }
      __syncwarp();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = lane % 16, column = half * 4 + lane / 16 * 2;
        write(first_row + r * 16 + row, first_column + n * 8 + column, *reinterpret_cast<const Result*>(tile + 2 * (row * 8 + column)));
      }
      __syncwarp();
#else
#pragma unroll
      for (int half = 0; half < 2; ++half)
        write(first_row + r * 16 + half * 8 + lane / 4, first_column + n * 8 + lane % 4 * 2,
              {re[r][n][2 * half], im[r][n][2 * half], re[r][n][2 * half + 1], im[r][n][2 * half + 1]});
#endif
    }
}
