// Compute-bound FP32: independent chains of fused multiply-adds in registers, from random inputs.
extern "C" __global__ void fma32(float* out, const float* in) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int chains = 16;
  float x[chains];
  const float a = 0.999f + 1e-4f * in[thread % INPUTS], b = 1e-3f * in[(thread * 7 + 1) % INPUTS];
#pragma unroll
  for (int i = 0; i < chains; ++i) x[i] = in[(thread + 31 * i) % INPUTS];
#pragma unroll UNROLL
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int i = 0; i < chains; ++i) x[i] = fmaf(x[i], a, b);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < chains; ++i) sum += x[i];
  out[thread] = sum;
}
