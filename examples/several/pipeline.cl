/* Two small kernels without an application, one source for OpenCL and CUDA. */
#ifdef __OPENCL_VERSION__
#define KERNEL __kernel
#define GLOBAL __global
#define ID get_global_id(0)
#else
#define KERNEL extern "C" __global__
#define GLOBAL
#define ID (blockIdx.x * blockDim.x + threadIdx.x)
#endif

/* y = 2 x + step */
#ifdef SCALE
KERNEL void scale(GLOBAL const float* x, GLOBAL float* y, int step) {
  const int i = ID;
  if (i < N) y[i] = 2.0f * x[i] + step;
}
#endif

/* z = mean of neighbours of w, as often as asked */
#ifdef BLUR
KERNEL void blur(GLOBAL const float* w, GLOBAL float* z) {
  const int i = ID;
  if (i >= N) return;
  float sum = 0;
  for (int j = 0; j < REPEAT; ++j) sum += w[(i + j) % N];
  z[i] = sum / REPEAT;
}
#endif
