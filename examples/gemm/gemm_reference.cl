// The same product, one element per thread and nothing clever: what gemm.cl is verified against.
#ifdef __OPENCL_VERSION__
#define KERNEL kernel void
#define GLOBAL global
#define INDEX(d) get_global_id(d)
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define INDEX(d) (d == 0 ? blockIdx.x * blockDim.x + threadIdx.x : blockIdx.y * blockDim.y + threadIdx.y)
#endif

KERNEL gemm_reference(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* c
#ifdef ALPHA_BETA
                      , const float alpha, const float beta
#endif
) {
  const int m = INDEX(0), n = INDEX(1);
  float sum = 0.0f;
  for (int k = 0; k < SIZE_K; ++k) sum += a[k * SIZE_M + m] * b[k * SIZE_N + n];
#ifdef ALPHA_BETA
  sum = alpha * sum + beta * c[n * SIZE_M + m];
#endif
  c[n * SIZE_M + m] = sum;
}
