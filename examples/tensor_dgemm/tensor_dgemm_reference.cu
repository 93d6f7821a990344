// The same product, one element per thread, in blocks of 16 x 16: what tensor_dgemm.cu is verified against.
extern "C" __global__ void tensor_dgemm_reference(const double* a, const double* b, double* c) {
  __shared__ double tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const size_t m = blockIdx.x * 16, n = blockIdx.y * 16;
  double sum = 0;
  for (int k = 0; k < SIZE_K; k += 16) {
    tile_a[y][x] = a[(size_t)(k + y) * SIZE_M + m + x];
    tile_b[y][x] = b[(n + y) * SIZE_K + k + x];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile_a[i][x] * tile_b[y][i];
    __syncthreads();
  }
  c[(n + y) * SIZE_M + m + x] = sum;
}
