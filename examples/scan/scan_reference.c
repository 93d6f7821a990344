// What scan.cl is verified against.
void scan_reference(const float* in, unsigned long long* state, float* out) {
  double sum = 0;
  (void)state;
  for (long i = 0; i < (long)SIZE; ++i) out[i] = (float)(sum += in[i]);
}
