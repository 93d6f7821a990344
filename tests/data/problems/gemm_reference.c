void gemm_reference(int m, int n, int k, const float* a, const float* b, float* c) {
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += a[i * m + row] * b[i * n + column];
      c[column * m + row] = sum;
    }
  }
}
