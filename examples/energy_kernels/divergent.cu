// Divergent: every thread runs its own number of steps through its own branches, so most lanes of a warp wait.
extern "C" __global__ void divergent(float* out, const unsigned* in) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = in[thread % INPUTS] * 2654435761u + thread;
  float x = 1.0f + (state & 1023) * 1e-3f;
  const int steps = STEPS / 4 + state % STEPS;
  for (int step = 0; step < steps; ++step) {
    state = state * 1664525u + 1013904223u;
    switch (state >> 30) {
      case 0: x = fmaf(x, 0.99f, 0.01f); break;
      case 1: x = sqrtf(x + 1.0f); break;
      case 2: x = __sinf(x) + 1.5f; break;
      default: x = x * 0.5f + __expf(-x); break;
    }
  }
  out[thread] = x;
}
