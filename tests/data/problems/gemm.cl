// A shortened stand-in for a tiled SGEMM: enough to be read, not meant to be fast.
// m, n and k are constants of the problem, which reach the kernel as macros like its parameters.
__kernel void gemm(const int rows, const int columns, const int depth, const __global float* a, const __global float* b,
                   __global float* c) {
  const int row = get_global_id(0), column = get_global_id(1);
  float sum = 0;
  for (int i = 0; i < depth; ++i) sum += a[i * m + row] * b[i * n + column];
  if (row < rows && column < columns) c[column * m + row] = sum;
}
