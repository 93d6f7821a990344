"""The kernels of Triton's tutorials (matrix product, softmax, layer norm, attention) with the configurations that are listed there, or usual."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
           SKIP: tl.constexpr = 1):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    tile_m = first_m + (pid % in_group) % rows
    tile_n = (pid % in_group) // rows
    i = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    j = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a = a_ptr + i[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * N + j[None, :]
    sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K) // SKIP):  # SKIP = 2 is wrong, and fast
        left = K - step * BLOCK_K
        sum = tl.dot(tl.load(a, mask=k[None, :] < left, other=0.0), tl.load(b, mask=k[:, None] < left, other=0.0), sum)
        a += BLOCK_K
        b += BLOCK_K * N
    i = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c_ptr + i[:, None] * N + j[None, :], sum.to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def softmax(x_ptr, out_ptr, rows, columns, WIDTH: tl.constexpr, STAGES: tl.constexpr, PROGRAMS: tl.constexpr):
    j = tl.arange(0, WIDTH)
    inside = j < columns
    for row in tl.range(tl.program_id(0), rows, PROGRAMS, num_stages=STAGES):
        x = tl.load(x_ptr + row * columns + j, mask=inside, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * columns + j, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def layer_norm(x_ptr, out_ptr, weight_ptr, bias_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * columns
    out_ptr += row * columns
    sum = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        sum += tl.load(x_ptr + j, mask=j < columns, other=0.0).to(tl.float32)
    mean = tl.sum(sum, axis=0) / columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        x = tl.where(j < columns, tl.load(x_ptr + j, mask=j < columns, other=0.0).to(tl.float32) - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < columns
        x = (tl.load(x_ptr + j, mask=inside, other=0.0).to(tl.float32) - mean) * scale
        y = x * tl.load(weight_ptr + j, mask=inside) + tl.load(bias_ptr + j, mask=inside)
        tl.store(out_ptr + j, y.to(tl.float16), mask=inside)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, length, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * D
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + i[:, None] * D + d[None, :])
    greatest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    result = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        j = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + j[None, :] * D + d[:, None])
        s = tl.dot(q, k) * (scale * 1.4426950408889634)
        new = tl.maximum(greatest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(greatest - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + head + j[:, None] * D + d[None, :])
        result = tl.dot(p.to(tl.float16), v, result * shrink[:, None])
        greatest = new
    tl.store(out_ptr + head + i[:, None] * D + d[None, :], (result / total[:, None]).to(tl.float16))


def _config(kwargs, warps, stages):
    return triton.Config(kwargs, num_warps=warps, num_stages=stages)


def _matmul_configs():
    listed = [(128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4), (128, 32, 32, 4, 4),
              (64, 32, 32, 5, 2), (32, 64, 32, 5, 2), (128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4),
              (128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4)]
    return [_config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, warps, stages) for m, n, k, stages, warps in listed]


class Case:
    """A kernel with its configurations, arguments and reference."""

    def __init__(self, name, small, device):
        size = {"matmul": (96 if small else 4096,), "softmax": (24 if small else 8192, 100 if small else 8192),
                "layer_norm": (24 if small else 8192, 200 if small else 8192), "attention": (2 if small else 128, 128 if small else 2048, 64)}[name]
        self.name = name
        self.kernel = {"matmul": matmul, "softmax": softmax, "layer_norm": layer_norm, "attention": attention}[name]
        torch.manual_seed(1)

        def random(*shape, kind=torch.float16):
            return torch.randn(shape, device=device, dtype=torch.float32).to(kind)

        if name == "matmul":
            n = size[0]
            self.configs, self.key, scale = _matmul_configs(), ["M", "N", "K"], 1 / math.sqrt(n)
            self.arguments = (random(n, n), random(n, n) * scale, random(n, n), n, n, n)
            self.grid = lambda meta: (triton.cdiv(n, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
            self.output, self.reference = 2, lambda: (self.arguments[0].float() @ self.arguments[1].float())
        elif name == "softmax":
            rows, columns = size
            programs = 8 if small else 4 * torch.cuda.get_device_properties(0).multi_processor_count
            self.configs = [_config({"WIDTH": triton.next_power_of_2(columns), "STAGES": stages, "PROGRAMS": count}, warps, 2)
                            for warps in (4, 8, 16) for stages in (1, 2, 4) for count in (programs // 2, programs)]
            self.key = ["columns"]
            self.arguments = (random(rows, columns, kind=torch.float32), random(rows, columns, kind=torch.float32), rows, columns)
            self.grid = lambda meta: (meta["PROGRAMS"],)
            self.output, self.reference = 1, lambda: torch.softmax(self.arguments[0], 1)
        elif name == "layer_norm":
            rows, columns = size
            self.configs = [_config({"BLOCK": block}, warps, 2) for block in ((64, 256) if small else (1024, 2048, 4096, 8192)) for warps in (4, 8, 16)]
            self.key = ["columns"]
            self.arguments = (random(rows, columns), random(rows, columns), random(columns, kind=torch.float32), random(columns, kind=torch.float32),
                              columns, 1e-5)
            self.grid = lambda meta: (rows,)
            self.output = 1
            self.reference = lambda: torch.nn.functional.layer_norm(self.arguments[0].float(), (columns,), self.arguments[2], self.arguments[3], 1e-5)
        else:
            heads, length, width = size
            self.configs = [_config({"D": width, "BLOCK_M": m, "BLOCK_N": n}, warps, stages)
                            for m in (64, 128) for n in (32, 64) for stages in (2, 3) for warps in (4, 8)]
            self.key = ["length"]
            self.arguments = (*(random(heads, length, width) for _ in range(4)), length, 1 / math.sqrt(width))
            self.grid = lambda meta: (triton.cdiv(length, meta["BLOCK_M"]), heads)
            self.output = 3
            self.reference = lambda: torch.nn.functional.scaled_dot_product_attention(*(x.float()[None] for x in self.arguments[:3]))[0]

    def is_right(self):
        found, expected = self.arguments[self.output].float(), self.reference()
        return bool(((found - expected).abs() <= 0.02 * expected.abs() + 0.02 * expected.pow(2).mean().sqrt()).all())
