"""Softmax and layer norm of rows of halves as Triton's tutorials write them: a program has a row."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * columns + tl.arange(0, BLOCK)
    row = tl.load(x + at).to(tl.float32)
    row = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + at, (row / tl.sum(row, axis=0)).to(tl.float16))


@triton.jit
def layer_norm(x, scale, shift, y, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * columns + column
    row = tl.load(x + at).to(tl.float32)
    row = row - tl.sum(row, axis=0) / columns
    row = row * tl.rsqrt(tl.sum(row * row, axis=0) / columns + 1e-5)
    tl.store(y + at, (row * tl.load(scale + column).to(tl.float32) + tl.load(shift + column).to(tl.float32)).to(tl.float16))
