// The same product, one element per thread, summed in double precision: what both kernels here are verified against.
#include "tensor.cuh"

extern "C" __global__ void tensor_gemm_reference(const unsigned* a, const unsigned* b, unsigned* c) {
  const int n = (blockIdx.x * blockDim.x + threadIdx.x) * 2, m = blockIdx.y * blockDim.y + threadIdx.y;
  double sum[2] = {};
  for (int k = 0; k < SIZE_K / 2; ++k) {
    const float2 x = unpack_halves(a[(size_t)m * (SIZE_K / 2) + k]);
    for (int i = 0; i < 2; ++i) {
      const float2 y = unpack_halves(b[(size_t)(n + i) * (SIZE_K / 2) + k]);
      sum[i] += x.x * y.x + x.y * y.y;
    }
  }
  c[((size_t)m * SIZE_N + n) / 2] = pack_halves((float)sum[0], (float)sum[1]);
}
