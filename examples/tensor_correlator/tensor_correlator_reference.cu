// A baseline and pair of polarisations per thread, summed in double precision or whole numbers: what tensor_correlator.cu is
// verified against.
#include "tensor.cuh"

#define TIMES (128 / BITS)
#if BITS == 16
typedef unsigned Sample;
typedef double Sum;
typedef float2 Result;
__device__ float2 complex_of(Sample sample) { return unpack_halves(sample); }
#else
typedef char2 Sample;
typedef int Sum;
typedef int2 Result;
__device__ int2 complex_of(Sample sample) { return make_int2((signed char)sample.x, (signed char)sample.y); }
#endif

extern "C" __global__ void tensor_correlator_reference(const Sample* in, Result* out) {
  const int p = threadIdx.x / 2, q = threadIdx.x % 2, i = blockIdx.x * blockDim.y + threadIdx.y, j = blockIdx.y, channel = blockIdx.z;
  if (i > j) return;
  Sum re = 0, im = 0;
  for (int t = 0; t < SAMPLES; ++t) {
    const size_t at = ((size_t)channel * (SAMPLES / TIMES) + t / TIMES) * RECEIVERS;
    const auto a = complex_of(in[((at + i) * 2 + p) * TIMES + t % TIMES]), b = complex_of(in[((at + j) * 2 + q) * TIMES + t % TIMES]);
    re += (Sum)a.x * b.x + (Sum)a.y * b.y;
    im += (Sum)a.y * b.x - (Sum)a.x * b.y;
  }
  Result result;
  result.x = re, result.y = im;
  out[((size_t)channel * (RECEIVERS * (RECEIVERS + 1) / 2) + j * (j + 1) / 2 + i) * 4 + p * 2 + q] = result;
}
