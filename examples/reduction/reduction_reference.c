// What reduction.cl is verified against.
void reduction_reference(const float* in, double* result) {
  double sum = 0;
  for (long i = 0; i < (long)SIZE; ++i) sum += in[i];
  *result += sum;
}
