"""A CuPy program with a kernel of its own, a 5-point stencil in blocks of 32 (scripts/gpu-capture)."""
import sys

import cupy

N, STEPS = 4096, 400
step = cupy.RawKernel(r"""
extern "C" __global__ void stencil(const float* in, float* out, int n) {
  const int i = blockDim.x * blockIdx.x + threadIdx.x;
  const int x = i % n, y = i / n;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}""", "stencil")
a = cupy.arange(N * N, dtype=cupy.float32) % 1013
b = a.copy()
for _ in range(4):
    step((N * N // 32,), (32,), (a, b, cupy.int32(N)))
begun, ended = cupy.cuda.Event(), cupy.cuda.Event()
begun.record()
for _ in range(STEPS):
    step((N * N // 32,), (32,), (a, b, cupy.int32(N)))
    a, b = b, a
ended.record()
ended.synchronize()
print(f"sum {float(a.sum(dtype=cupy.float64)):.6f}")
print(f"launch {cupy.cuda.get_elapsed_time(begun, ended) / STEPS * 1e-3:.4g} s", file=sys.stderr)
