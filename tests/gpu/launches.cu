// What a launch takes on the host: bursts that the queue has room for, of a kernel that does next to nothing (scripts/gpu-capture).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

__global__ void add_one(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

int main() {
  const int threads = 1024, bursts = 400, burst = 256;
  int* x = nullptr;
  cudaMalloc(&x, threads * sizeof(int));
  cudaMemset(x, 0, threads * sizeof(int));
  add_one<<<threads / 128, 128>>>(x);
  std::vector<double> seconds;
  for (int i = 0; i < bursts; ++i) {
    cudaDeviceSynchronize();
    const auto begun = std::chrono::steady_clock::now();
    for (int k = 0; k < burst; ++k) add_one<<<threads / 128, 128>>>(x);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() / burst);
  }
  int first = 0;
  cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost);
  std::sort(seconds.begin(), seconds.end());
  std::printf("sum %d (%s)\n", first, cudaGetErrorString(cudaGetLastError()));
  std::fprintf(stderr, "launch %.4g s\n", seconds[seconds.size() / 2]);
  return 0;
}
