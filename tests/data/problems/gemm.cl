// A shortened stand-in for a tiled SGEMM: enough to be read, not meant to be fast.
__kernel void gemm(const int m, const int n, const int k, const __global float* a, const __global float* b,
                   __global float* c) {
  const int row = get_global_id(0), column = get_global_id(1);
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[i * m + row] * b[i * n + column];
  if (row < m && column < n) c[column * m + row] = sum;
}
