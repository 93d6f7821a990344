/* The same chains of multiply-adds on every core of a processor: eight of them, sixteen threads' worth side by side, fill
   the vector registers. */
enum { LANES = 16, CHAINS = 8 };

void full_load(float* out, float seed) {
  const float a = 0.9990001f + 1e-7f * seed, b = 1.0e-3f * seed;
#pragma omp parallel for schedule(static)
  for (int first = 0; first < THREADS; first += LANES) {
    float x[CHAINS][LANES];
    for (int i = 0; i < CHAINS; ++i)
      for (int lane = 0; lane < LANES; ++lane) x[i][lane] = 1.0f + 1e-3f * (float)((first + lane + 31 * i) % 97);
    for (int step = 0; step < STEPS; ++step)
      for (int i = 0; i < CHAINS; ++i)
        for (int lane = 0; lane < LANES; ++lane) x[i][lane] = x[i][lane] * a + b;
    for (int lane = 0; lane < LANES; ++lane) {
      float sum = 0;
      for (int i = 0; i < CHAINS; ++i) sum += x[i][lane];
      out[first + lane] = sum;
    }
  }
}
