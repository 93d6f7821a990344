// A program that nvcc compiles, whose kernel lies in a file of its own (scripts/gpu-capture).
#include <cstdio>
#include <vector>

#include "sgemm_kernel.cu"

int main() {
  const int n = 2048, repeats = 50;
  const size_t bytes = size_t{n} * n * sizeof(float);
  std::vector<float> host(size_t{n} * n);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 97) / 97;
  float* memory[3];
  for (float*& one : memory) {
    cudaMalloc(&one, bytes);
    cudaMemcpy(one, host.data(), bytes, cudaMemcpyHostToDevice);
  }
  cudaEvent_t begun, ended;
  cudaEventCreate(&begun);
  cudaEventCreate(&ended);
  for (const int count : {1, repeats}) {
    cudaEventRecord(begun);
    for (int i = 0; i < count; ++i) sgemm<<<dim3(n / 4, n / 64), dim3(4, 64)>>>(memory[0], memory[1], memory[2], n);
    cudaEventRecord(ended);
  }
  cudaMemcpy(host.data(), memory[2], bytes, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (const float value : host) sum += value;
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begun, ended);
  std::printf("sum %.6f (%s)\n", sum, cudaGetErrorString(cudaGetLastError()));
  std::fprintf(stderr, "launch %.4g s\n", milliseconds * 1e-3 / repeats);
  return 0;
}
