// A baseline and pair of polarisations per thread, summed in double precision: what tensor_correlator.cu is verified against.
#include "tensor.cuh"

extern "C" __global__ void tensor_correlator_reference(const unsigned* in, float2* out) {
  const int p = threadIdx.x / 2, q = threadIdx.x % 2, i = blockIdx.x * blockDim.y + threadIdx.y, j = blockIdx.y, channel = blockIdx.z;
  if (i > j) return;
  double re = 0, im = 0;
  for (int t = 0; t < SAMPLES; ++t) {
    const size_t at = ((size_t)channel * (SAMPLES / 8) + t / 8) * RECEIVERS;
    const float2 a = unpack_halves(in[((at + i) * 2 + p) * 8 + t % 8]), b = unpack_halves(in[((at + j) * 2 + q) * 8 + t % 8]);
    re += (double)a.x * b.x + (double)a.y * b.y;
    im += (double)a.y * b.x - (double)a.x * b.y;
  }
  out[((size_t)channel * (RECEIVERS * (RECEIVERS + 1) / 2) + j * (j + 1) / 2 + i) * 4 + p * 2 + q] = make_float2(re, im);
}
