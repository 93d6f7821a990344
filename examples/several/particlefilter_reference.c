/* The numbers u rise, and so do the weights: one walk over both finds every particle. */
void particlefilter_reference(const float* position, const float* cumulative, float* resampled) {
  long found = 0;
  for (long i = 0; i < PF_N; ++i) {
    const float u = (i + 0.5f) / PF_N;
    while (found < PF_N - 1 && cumulative[found] < u) ++found;
    resampled[i] = position[found];
  }
}
