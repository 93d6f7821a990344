// Fused multiply-adds in registers on every multiprocessor, for OpenCL and CUDA: the fullest compute load, whose power
// over the clock is what the power model is fitted to (ergotune model). Eight independent chains per thread hide the
// latency of each other; the values stay near 1, so that every bit of the adders is at work.

#ifdef __OPENCL_VERSION__
#define KERNEL kernel void
#define GLOBAL global
#define THREAD get_global_id(0)
#define FMA fma
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)
#define FMA fmaf
#endif

KERNEL full_load(GLOBAL float* out, float seed) {
  const unsigned int thread = THREAD;
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = 1.0f + 1e-3f * (float)((thread + 31 * i) % 97);
  const float a = 0.9990001f + 1e-7f * seed, b = 1.0e-3f * seed;
  for (int step = 0; step < STEPS; ++step) {
    x[0] = FMA(x[0], a, b);
    x[1] = FMA(x[1], a, b);
    x[2] = FMA(x[2], a, b);
    x[3] = FMA(x[3], a, b);
    x[4] = FMA(x[4], a, b);
    x[5] = FMA(x[5], a, b);
    x[6] = FMA(x[6], a, b);
    x[7] = FMA(x[7], a, b);
  }
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  out[thread] = sum;
}
