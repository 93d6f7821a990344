// FP64: chains of double-precision fused multiply-adds in registers.
extern "C" __global__ void fp64(double* out, const double* in) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int chains = 8;
  double x[chains];
  const double a = 0.999 + 1e-4 * in[thread % INPUTS], b = 1e-3 * in[(thread * 7 + 1) % INPUTS];
#pragma unroll
  for (int i = 0; i < chains; ++i) x[i] = in[(thread + 31 * i) % INPUTS];
#pragma unroll UNROLL
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int i = 0; i < chains; ++i) x[i] = fma(x[i], a, b);
  }
  double sum = 0;
#pragma unroll
  for (int i = 0; i < chains; ++i) sum += x[i];
  out[thread] = sum;
}
