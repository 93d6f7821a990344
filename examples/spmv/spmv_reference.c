// What spmv.cl is verified against.
void spmv_reference(const int* begin, const int* length, const int* column, const float* value, const float* x, float* y) {
  for (long row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (long i = begin[row]; i < (long)begin[row] + length[row]; ++i) sum += (double)value[i] * x[column[i]];
    y[row] = sum;
  }
}
