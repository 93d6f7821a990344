// Memory-bound: a copy that no cache holds.
extern "C" __global__ void copy(float4* out, const float4* in) {
  const long stride = (long)gridDim.x * blockDim.x;
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + (UNROLL - 1) * stride < COUNT / 4; i += UNROLL * stride) {
    float4 piece[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) piece[u] = in[i + u * stride];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) out[i + u * stride] = piece[u];
  }
  for (; i < COUNT / 4; i += stride) out[i] = in[i];
}
