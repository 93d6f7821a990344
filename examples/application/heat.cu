// heat.cl in CUDA C++.
extern "C" __global__ void heat(int width, int height, float rate, const float* now, float* next) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
  for (int row = 0; row < ROWS; ++row) {
    const int y = first + row;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) continue;
    const int i = y * width + x;
    next[i] = now[i] + rate * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4.0f * now[i]);
  }
}
