"""A CuPy script with a kernel of its own that knows nothing of ergotune (scripts/gpu-check, step capture)."""
import cupy

kernel = cupy.RawKernel(r"""
extern "C" __global__ void scaled_sum(const float* x, const float* y, float* z, float k, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) z[i] = k * x[i] + y[i];
}""", "scaled_sum")
n = 1 << 18
x = cupy.arange(n, dtype=cupy.float32)
y = cupy.ones(n, dtype=cupy.float32)
z = cupy.zeros(n, dtype=cupy.float32)
kernel((n // 128,), (128,), (x, y, z, cupy.float32(0.5), cupy.int32(n)))
print(f"sum {float(z.sum()):.1f}")
