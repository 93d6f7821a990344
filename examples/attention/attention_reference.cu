// A query per block, all its scores in shared memory: what attention.cu is verified against.
#include "tensor.cuh"

extern "C" __global__ void attention_reference(const unsigned* q, const unsigned* k, const unsigned* v, unsigned* out) {
  __shared__ float scores[LENGTH], query[DEPTH];
  const size_t head = (size_t)blockIdx.y * LENGTH * (DEPTH / 2);
  const int row = blockIdx.x, keys = CAUSAL ? row + 1 : LENGTH;
  for (int d = threadIdx.x; d < DEPTH / 2; d += blockDim.x) {
    const float2 pair = unpack_halves(q[head + (size_t)row * (DEPTH / 2) + d]);
    query[2 * d] = pair.x, query[2 * d + 1] = pair.y;
  }
  __syncthreads();
  for (int n = threadIdx.x; n < keys; n += blockDim.x) {
    float sum = 0;
    for (int d = 0; d < DEPTH / 2; ++d) {
      const float2 pair = unpack_halves(k[head + (size_t)n * (DEPTH / 2) + d]);
      sum += query[2 * d] * pair.x + query[2 * d + 1] * pair.y;
    }
    scores[n] = sum / sqrtf((float)DEPTH);
  }
  __syncthreads();
  float largest = -1e30f, total = 0;
  for (int n = 0; n < keys; ++n) largest = fmaxf(largest, scores[n]);
  for (int n = 0; n < keys; ++n) total += expf(scores[n] - largest);
  for (int d = threadIdx.x; d < DEPTH / 2; d += blockDim.x) {
    float2 sum = {0, 0};
    for (int n = 0; n < keys; ++n) {
      const float weight = expf(scores[n] - largest) / total;
      const float2 pair = unpack_halves(v[head + (size_t)n * (DEPTH / 2) + d]);
      sum.x += weight * pair.x, sum.y += weight * pair.y;
    }
    out[head + (size_t)row * (DEPTH / 2) + d] = pack_halves(sum.x, sum.y);
  }
}
