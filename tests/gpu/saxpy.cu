// A CUDA program that knows nothing of ergotune (scripts/gpu-check, step capture): nvcc compiled its kernels.
#include <cstdio>
#include <vector>

__global__ void saxpy(float a, const float* __restrict__ x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

template <int kRounds>
__global__ void busy(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = y[i];
  for (int round = 0; round < kRounds; ++round) value = 0.5f * value + 1;
  y[i] = value;
}

int main() {
  const int n = 1 << 20;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i % 97);
  float *x = nullptr, *y = nullptr;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(y, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (int i = 0; i < 3; ++i) saxpy<<<n / 256, 256>>>(1.25f, x, y, n);
  busy<500><<<dim3(n / 128), dim3(128)>>>(y, n);
  cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (const float value : host) sum += value;
  std::printf("sum %.3f (%s)\n", sum, cudaGetErrorString(cudaGetLastError()));
  return 0;
}
