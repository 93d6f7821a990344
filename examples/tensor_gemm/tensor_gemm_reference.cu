// The same product, two elements per thread, summed in double precision: what the kernels here are verified against.
#include "tensor.cuh"

#ifndef TYPE
#define TYPE 0
#endif
#define PER_WORD (TYPE == 2 ? 4 : 2)

__device__ __forceinline__ void unpack(unsigned word, float (&values)[PER_WORD]) {
  for (int i = 0; i < PER_WORD; ++i) {
    if (TYPE == 0) values[i] = unpack_halves(word >> 16 * i).x;
    if (TYPE == 1) values[i] = __uint_as_float(word >> 16 * i << 16);
    if (TYPE == 2) {  // bits of FP8 are those of FP16, whose exponent's bias is greater by 8
      const unsigned bits = word >> 8 * i & 0xFF;
      values[i] = 256 * unpack_halves((bits & 0x80) << 8 | (bits & 0x7F) << 7).x;
    }
  }
}

extern "C" __global__ void tensor_gemm_reference(const unsigned* a, const unsigned* b, unsigned* c) {
  const int n = (blockIdx.x * blockDim.x + threadIdx.x) * 2, m = blockIdx.y * blockDim.y + threadIdx.y;
  double sum[2] = {};
  for (int k = 0; k < SIZE_K / PER_WORD; ++k) {
    float x[PER_WORD], y[PER_WORD];
    unpack(a[(size_t)m * (SIZE_K / PER_WORD) + k], x);
    for (int j = 0; j < 2; ++j) {
      unpack(b[(size_t)(n + j) * (SIZE_K / PER_WORD) + k], y);
      for (int i = 0; i < PER_WORD; ++i) sum[j] += x[i] * y[i];
    }
  }
  c[((size_t)m * SIZE_N + n) / 2] = pack_halves((float)sum[0], (float)sum[1]);
}
