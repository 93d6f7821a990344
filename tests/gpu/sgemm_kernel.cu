// One element of C = A B a thread: the source that `capture --source` is given (scripts/gpu-capture).
extern "C" __global__ void sgemm(const float* __restrict__ a, const float* __restrict__ b, float* c, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= n || row >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
