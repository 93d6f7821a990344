#!/usr/bin/env python3
"""Writes drawn problems of simulated kernels whose optimum lies beside failures, as FOLDER/SEED.toml.

    resource_cliffs.py FOLDER [--spaces 10] [--first 1]
    bench_search --simulated FOLDER/1.toml,FOLDER/2.toml [--device a100] [--repeats 10] [--strategies auto,genetic]

Four kinds of kernels take turns. Larger tiles raise the efficiency and use up registers and shared memory, past whose limits a
launch fails. How much they use up is drawn, and some parameters have no effect but noise.
"""
import argparse
import os
import random

TILED = '''name = "tiled_{seed}"
objective = "energy"
restrictions = ["bx * by <= 1024"]
[constants]
N = 4096
[parameters]
bx = [8, 16, 32, 64, 128, 256]
by = [1, 2, 4, 8, 16]
tile = [1, 2, 3, 4, 5, 6, 7, 8]
vector = [1, 2, 4, 8]
layout = ["row", "column", "tiled"]
shared = [false, true]
unroll = [0, 1, 2, 4, 8]
pad = [0, 1, 2]
cache = [0, 1]
extra = [0, 1, 2, 3]
[kernel]
function = "x"
[kernel.launch]
grid = ["N // (tile * bx)", "N // (tile * by)"]
block = ["bx", "by"]
[simulation]
flops = "2 * N**3"
bytes = "4 * N**2 * (N / (tile * (bx if shared else 8)) + N / (tile * (by if shared else 8)) + 2)"
registers = "{base} + tile * tile * {per_tile} + {per_vector} * vector"
shared_bytes = "shared * 4 * {depth} * tile * (bx + by)"
efficiency = "0.92 * tile / (tile + {tile:.2f}) * vector / (vector + {vector:.2f}) * (1 - 0.01 * abs(unroll - {unroll}))"
'''
STENCIL = '''name = "stencil_{seed}"
objective = "energy"
restrictions = ["block_x * block_y <= 1024", "block_x * block_y >= 32"]
[constants]
N = 8192
[parameters]
block_x = [16, 32, 64, 128, 256, 512]
block_y = [1, 2, 4, 8, 16]
work_x = [1, 2, 4, 8]
work_y = [1, 2, 3, 4, 6, 8]
steps = [1, 2, 3, 4, 5, 6]
stage = ["none", "shared", "registers"]
unroll = [1, 2, 4]
prefetch = [false, true]
order = [0, 1, 2]
swizzle = [0, 1, 2, 3]
[kernel]
function = "x"
[kernel.launch]
grid = ["N // (work_x * block_x)", "N // (work_y * block_y)"]
block = ["block_x", "block_y"]
[simulation]
flops = "{flops} * N**2 * 24 * (1 + {halo:.2f} * steps * (1 / (block_x * work_x) + 1 / (block_y * work_y)))"
bytes = "8 * N**2 * 24 / steps * (1 + (4 if stage == 'none' else 2 * steps) / (block_y * work_y) + (1 if prefetch else 1.1) * 2 * steps / (block_x * work_x))"
registers = "{base} + {per_work} * work_x * work_y * (steps if stage == 'registers' else 1) + 4 * unroll + (12 if prefetch else 0)"
shared_bytes = "(stage == 'shared') * {word} * (block_x * work_x + 2 * steps) * (block_y * work_y + 2 * steps)"
efficiency = "0.8 * (work_x * work_y) / (work_x * work_y + {work:.2f}) * (1 - 0.02 * abs(unroll - {unroll})) * (0.9 if stage == 'none' else 1)"
'''
GEMM = '''name = "blocked_{seed}"
objective = "energy"
restrictions = ["MWG % (MDIM * VM) == 0", "NWG % (NDIM * VN) == 0", "MDIM * NDIM <= 1024", "MDIM * NDIM >= 32"]
[constants]
N = 4096
[parameters]
MWG = [16, 32, 64, 128, 256]
NWG = [16, 32, 64, 128, 256]
KWG = [8, 16, 32, 64]
MDIM = [4, 8, 16, 32]
NDIM = [4, 8, 16, 32]
VM = [1, 2, 4, 8]
VN = [1, 2, 4, 8]
SA = [0, 1]
SB = [0, 1]
KU = [1, 2, 4, 8]
stages = [1, 2, 3, 4]
[kernel]
function = "x"
[kernel.launch]
grid = ["N // MWG", "N // NWG"]
block = ["MDIM", "NDIM"]
[simulation]
flops = "2 * N**3"
bytes = "4 * N**3 * ((1 if SA else {miss:.2f}) / NWG + (1 if SB else {miss:.2f}) / MWG) + 8 * N**2"
registers = "{base} + {per:.2f} * MWG * NWG / (MDIM * NDIM) + {kv} * (VM + VN) + KU * 2"
shared_bytes = "{word} * stages * KWG * (SA * MWG + SB * NWG)"
efficiency = "0.95 * (MWG * NWG / (MDIM * NDIM)) / (MWG * NWG / (MDIM * NDIM) + {work:.2f}) * (VM * VN) / (VM * VN + {vec:.2f}) * (1 - 0.3 / (KWG * KU / 8 + 1)) * (1 - {stall:.2f} / (stages + 1))"
'''
LINE = '''name = "line_{seed}"
objective = "energy"
[constants]
N = 16777216
[parameters]
threads = [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]
items = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
vector = [1, 2, 4, 8]
bins = [1, 2, 4, 8, 16]
buffers = [1, 2, 3, 4]
cached = [false, true]
mode = ["atomic", "warp", "block"]
unroll = [1, 2, 4, 8]
hint = [0, 1, 2]
flavour = [0, 1, 2, 3]
[kernel]
function = "x"
[kernel.launch]
grid = ["N // (threads * items)"]
block = ["threads"]
[simulation]
flops = "N * {flops} * (1 + 3 / items) * (1.3 if mode == 'atomic' else 1)"
bytes = "N * 8 * (1 + {miss:.2f} / (buffers * vector)) * (1 if cached else 1.15)"
registers = "{base} + {per} * items + {kv} * vector * buffers + 2 * unroll"
shared_bytes = "(mode != 'warp') * 4 * threads * bins * (buffers if mode == 'block' else 1)"
efficiency = "0.7 * items / (items + {work:.2f}) * bins / (bins + {bin:.2f}) * vector / (vector + 0.2) * (1 - 0.015 * abs(unroll - {unroll}))"
'''


def draw(seed):
    r = random.Random(1000 + seed)
    kind = seed % 4
    if kind == 0:
        return TILED.format(seed=seed, base=r.randint(16, 40), per_tile=r.randint(1, 4), per_vector=r.randint(2, 10),
            depth=r.choice([8, 12, 16, 24, 32]), tile=r.uniform(0.5, 2.5), vector=r.uniform(0.1, 0.8), unroll=r.choice([1, 2, 4, 8]))
    if kind == 1:
        return STENCIL.format(seed=seed, flops=r.choice([10, 20, 40]), halo=r.uniform(0.5, 2), base=r.randint(16, 32), per_work=r.randint(2, 8),
            word=r.choice([4, 8]), work=r.uniform(0.5, 4), unroll=r.choice([1, 2, 4]))
    if kind == 2:
        return GEMM.format(seed=seed, miss=r.uniform(1.2, 3), base=r.randint(16, 40), per=r.uniform(1, 3), kv=r.randint(1, 6), word=r.choice([4, 8]),
            work=r.uniform(2, 12), vec=r.uniform(0.2, 1.5), stall=r.uniform(0.1, 0.4))
    return LINE.format(seed=seed, flops=r.choice([100, 400, 1600]), miss=r.uniform(0.2, 2), base=r.randint(12, 32), per=r.randint(2, 8), kv=r.randint(1, 6),
        work=r.uniform(0.5, 4), bin=r.uniform(0.3, 2), unroll=r.choice([1, 2, 4, 8]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--spaces", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    for seed in range(options.first, options.first + options.spaces):
        with open(os.path.join(options.folder, f"{seed}.toml"), "w", encoding="utf-8") as file:
            file.write(draw(seed))


if __name__ == "__main__":
    main()
