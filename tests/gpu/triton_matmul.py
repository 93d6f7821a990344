"""A Triton program: a matrix product in FP16 (scripts/gpu-capture)."""
import sys

import torch
import triton
import triton.language as tl

N, REPEATS = 1024, 2000


@triton.jit
def matmul(a, b, c, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, n, BK):
        inner = k + tl.arange(0, BK)
        sums += tl.dot(tl.load(a + rows[:, None] * n + inner[None, :]), tl.load(b + inner[:, None] * n + columns[None, :]))
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


torch.manual_seed(1)
a, b = (torch.randn(N, N, device="cuda", dtype=torch.float16) for _ in range(2))
c = torch.empty_like(a)
begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for repeats in (10, REPEATS):
    begun.record()
    for _ in range(repeats):
        matmul[(N // 64, N // 64)](a, b, c, N, BM=64, BN=64, BK=32)
    ended.record()
torch.cuda.synchronize()
print(f"sum {c.double().sum().item():.6f} {c.double().abs().sum().item():.6f}")
print(f"launch {begun.elapsed_time(ended) / REPEATS * 1e-3:.4g} s", file=sys.stderr)
