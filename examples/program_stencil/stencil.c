// Jacobi steps of a five-point stencil on a square grid, in tiles, with OpenMP. Prints the rate and a checksum.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef TILE_X
#define TILE_X 64
#endif
#ifndef TILE_Y
#define TILE_Y 16
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void step(const float *restrict in, float *restrict out, int n) {
#pragma omp parallel for collapse(2) schedule(runtime)
  for (int ty = 1; ty < n - 1; ty += TILE_Y)
    for (int tx = 1; tx < n - 1; tx += TILE_X) {
      const int y_end = ty + TILE_Y < n - 1 ? ty + TILE_Y : n - 1, x_end = tx + TILE_X < n - 1 ? tx + TILE_X : n - 1;
      for (int y = ty; y < y_end; ++y)
        for (int x = tx; x < x_end; ++x)
          out[y * n + x] = 0.2f * (in[y * n + x] + in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
    }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 1024, steps = argc > 2 ? atoi(argv[2]) : 40;
  float *a = calloc((size_t)n * n, sizeof *a), *b = calloc((size_t)n * n, sizeof *b);
  if (!a || !b || n < 3) return 2;
  for (int i = 0; i < n * n; ++i) a[i] = b[i] = (float)(i % 17) / 17;
  const double begin = now();
  for (int s = 0; s < steps; ++s) {
    step(a, b, n);
    float *swap = a;
    a = b;
    b = swap;
  }
  const double seconds = now() - begin;
  double sum = 0;
  for (int i = 0; i < n * n; ++i) sum += a[i];
  printf("rate: %.4f Mupdates/s\n", 1e-6 * (double)(n - 2) * (n - 2) * steps / seconds);
  printf("checksum: %.6f\n", sum / ((double)n * n));
  free(a);
  free(b);
  return 0;
}
