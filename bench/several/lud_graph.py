"""The launches of examples/several/lud.toml written by hand: one CUDA graph, captured once and launched again and again.

    lud_graph.py [--block 16] [--n 4096] [--rounds 30]

Prints the median time of a round in s as JSON, and how far L U is from A. For comparison with what ergotune measures of the same
configuration. Needs CuPy.
"""
import argparse
import json
import pathlib
import statistics

import cupy

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "several"


def kernels(n, block):
    text = (SOURCE / "portable.h").read_text() + (SOURCE / "lud.cl").read_text().replace('#include "portable.h"', "")
    defines = f"#define LUD_N {n}\n#define BLOCK {block}\n#define RESET 1\n#define LUD 1\n"
    module = cupy.RawModule(code=defines + text)
    return module.get_function("reset"), module.get_function("lud")


def launch_round(reset, lud, a0, a, n, block):
    reset((n // 16, n // 16), (16, 16), (a0, a))
    blocks = n // block
    for k in range(blocks):
        left = blocks - k - 1
        for phase in range(3 if left > 0 else 1):
            grid = (1, 2 * left, left * left)[phase]
            lud((grid,), (block, block), (a, cupy.int32(k), cupy.int32(phase)))


def residual(a0, a, n):
    """Largest element of |L U - A| over the largest of A."""
    lower = cupy.tril(a, -1) + cupy.eye(n, dtype=a.dtype)
    matrix = a0 + n * cupy.eye(n, dtype=a.dtype)
    return float(cupy.abs(lower @ cupy.triu(a) - matrix).max() / cupy.abs(matrix).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    n, block = arguments.n, arguments.block
    a0 = cupy.random.default_rng(1).random((n, n), dtype=cupy.float32) * 2 - 1
    a = cupy.empty_like(a0)
    reset, lud = kernels(n, block)
    launch_round(reset, lud, a0, a, n, block)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        launch_round(reset, lud, a0, a, n, block)
        graph = stream.end_capture()
        times = []
        for _ in range(arguments.rounds + 3):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    print(json.dumps({"n": n, "block": block, "seconds": statistics.median(times[3:]), "rounds": arguments.rounds,
                      "residual": residual(a0, a, n)}))


if __name__ == "__main__":
    main()
