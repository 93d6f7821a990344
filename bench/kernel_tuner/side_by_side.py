#!/usr/bin/env python3
"""Kernel Tuner and ergotune.kernel_tuner on the same scripts: OpenCL cold and warm, and simulation. Needs both, and PyOpenCL.

    PYTHONPATH=build/release/python ERGOTUNE_COMMAND=build/release/ergotune \\
        python bench/kernel_tuner/side_by_side.py [--runs 3] [--cores 2] [--scale 1.0] [--strategies pso ...] [opencl] [simulation]

Each run is a process of its own with new caches (cold), then the same again (warm); the tools take turns. Wall time and
processor time (children included) are told: on a machine with other work only the second is fair.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

MATMUL = """
__kernel void matmul(__global float *c, __global const float *a, __global const float *b) {
  __local float sa[block_size_y * tile_y][block_size_x], sb[block_size_x][block_size_x * tile_x];
  int tx = get_local_id(0), ty = get_local_id(1);
  int x = get_group_id(0) * block_size_x * tile_x + tx, y = get_group_id(1) * block_size_y * tile_y + ty;
  float sum[tile_y][tile_x];
  for (int i = 0; i < tile_y; i++) for (int j = 0; j < tile_x; j++) sum[i][j] = 0;
  for (int k = 0; k < N; k += block_size_x) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < tile_y; i++) sa[ty + i * block_size_y][tx] = a[(y + i * block_size_y) * N + k + tx];
    for (int r = ty; r < block_size_x; r += block_size_y)
      for (int j = 0; j < tile_x; j++) sb[r][tx + j * block_size_x] = b[(k + r) * N + x + j * block_size_x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int kk = 0; kk < block_size_x; kk++)
      for (int i = 0; i < tile_y; i++) for (int j = 0; j < tile_x; j++)
        sum[i][j] += sa[ty + i * block_size_y][kk] * sb[kk][tx + j * block_size_x];
  }
  for (int i = 0; i < tile_y; i++) for (int j = 0; j < tile_x; j++)
    c[(y + i * block_size_y) * N + x + j * block_size_x] = sum[i][j];
}"""
VECTOR = """
__kernel void vector_add(__global float *c, __global const float *a, __global const float *b, int n) {
  for (int k = 0; k < per_thread; k++) {
    int i = (get_group_id(0) * per_thread + k) * block_size_x + get_local_id(0);
    if (i < n) c[i] = a[i] + b[i];
  }
}"""
STENCIL = """
__kernel void stencil(__global float *out, __global const float *in) {
  int x = get_global_id(0);
  for (int k = 0; k < tile; k++) {
    int y = (get_group_id(1) * tile + k) * block_size_y + get_local_id(1);
    float sum = 0;
    #pragma unroll
    for (int i = -radius; i <= radius; i++) for (int j = -radius; j <= radius; j++)
      sum += in[((y + i + W) % W) * W + (x + j + W) % W];
    out[y * W + x] = sum / ((2 * radius + 1) * (2 * radius + 1));
  }
}"""


def problems(scale):
    """By name: (arguments of tune_kernel, keywords, configurations)."""
    random_array = np.random.default_rng(1).random
    n = 64
    a, b = random_array((n, n)).astype(np.float32), random_array((n, n)).astype(np.float32)
    found = {"matmul 64x64": (("matmul", f"#define N {n}\n{MATMUL}", (n, n), [np.zeros_like(a), a, b],
                               {"block_size_x": [4, 8, 16, 32], "block_size_y": [1, 2, 4, 8, 16, 32], "tile_x": [1, 2, 4],
                                "tile_y": [1, 2, 4]}),
                              {"grid_div_x": ["block_size_x", "tile_x"], "grid_div_y": ["block_size_y", "tile_y"],
                               "restrictions": [f"block_size_x * tile_x <= {n}", f"block_size_y * tile_y <= {n}",
                                                "block_size_x % block_size_y == 0"], "answer": [a @ b, None, None], "atol": 1e-3}, 80)}
    size = 1 << 18
    x, y = random_array(size).astype(np.float32), random_array(size).astype(np.float32)
    found["vector_add"] = (("vector_add", VECTOR, size, [np.zeros_like(x), x, y, np.int32(size)],
                            {"block_size_x": [16 * i for i in range(1, 17)], "per_thread": [1, 2, 4, 8]}),
                           {"grid_div_x": ["block_size_x", "per_thread"], "answer": [x + y, None, None, None]}, 60)
    w = 256
    image = random_array((w, w)).astype(np.float32)
    found["stencil 256x256"] = (("stencil", f"#define W {w}\n{STENCIL}", (w, w), [np.zeros_like(image), image],
                                 {"block_size_x": [8, 16, 32, 64], "block_size_y": [1, 2, 4, 8], "tile": [1, 2, 4], "radius": [2]}),
                                {"grid_div_x": ["block_size_x"], "grid_div_y": ["block_size_y", "tile"]}, 40)
    return {name: (arguments, keywords, max(2, round(count * scale))) for name, (arguments, keywords, count) in found.items()}


def tool(name):
    if name == "ergotune":
        import ergotune.kernel_tuner as module
    else:
        import kernel_tuner as module
    return module


def run_opencl(name, kernel, scale):
    arguments, keywords, count = problems(scale)[kernel]
    np.random.seed(1)
    random.seed(1)
    # the same configurations for both: the first `count` of a fixed shuffle
    from itertools import product
    params = arguments[4]
    everything = [dict(zip(params, v)) for v in product(*params.values())]
    conditions = [compile(text, "restriction", "eval") for text in keywords.get("restrictions", [])]
    everything = [c for c in everything if all(eval(text, {}, dict(c)) for text in conditions)]
    random.shuffle(everything)
    chosen = {tuple(c.values()) for c in everything[:count]}

    def is_chosen(p):
        return tuple(p[name] for name in params) in chosen

    keywords = {**keywords, "restrictions": [is_chosen]}
    results, _ = tool(name).tune_kernel(*arguments, lang="OpenCL", quiet=True, **keywords)
    good = [row for row in results if "__error__" not in row]
    return {"configurations": len(results), "good": len(good), "best_ms": min(row["time"] for row in good)}


def run_simulation(name, strategy, file):
    kept = json.loads(Path(file).read_text())
    module, params = tool(name), kept["tune_params"]

    def simulate(count):
        options = {"max_fevals": count, **SIMULATED[strategy]}
        began = time.process_time()
        results, _ = module.tune_kernel("k", "__kernel void k() {}", 1, [], params, lang="OpenCL", simulation_mode=True, cache=file,
                                        quiet=True, strategy=strategy, strategy_options=options)
        spent = time.process_time() - began
        return len(results), spent, len({tuple(row[name] for name in params) for row in results})

    simulate(2)
    few, many = simulate(2), simulate(EVALUATIONS.get(strategy, 3000))
    seconds = many[1] - few[1]
    return {"evaluations": many[0], "per_second": (many[0] - few[0]) / seconds, "different": many[2],
            "different_per_second": (many[2] - few[2]) / seconds, "fixed_s": few[1]}


#: Strategies that are compared, with what makes them go on until max_fevals.
SIMULATED = {"random_sample": {"fraction": 1}, "mls": {}, "greedy_ils": {}, "minimize": {}, "basinhopping": {}, "dual_annealing": {},
             "bayes_opt": {},
             **dict.fromkeys(("genetic_algorithm", "simulated_annealing", "diff_evo", "firefly_algorithm", "pso"), {"maxiter": 100000})}
#: Evaluations that are asked for, where 3,000 are not.
EVALUATIONS = {"random_sample": 16000, "bayes_opt": 120}


def write_cache(file):
    params = {"a": list(range(16)), "b": list(range(16)), "c": list(range(8)), "d": list(range(8))}
    draw, rows = random.Random(1), {}
    for a in params["a"]:
        for b in params["b"]:
            for c in params["c"]:
                for d in params["d"]:
                    t = abs(a - 7) + 2 * abs(b - 5) + 0.3 * c + d + draw.random()
                    rows[f"{a},{b},{c},{d}"] = {"a": a, "b": b, "c": c, "d": d, "time": t, "times": [t] * 7, "compile_time": 100.0,
                                                "verification_time": 0.0, "benchmark_time": 10.0, "strategy_time": 1.0,
                                                "framework_time": 1.0, "timestamp": "2026-11-22"}
    file.write_text(json.dumps({"device_name": "made", "kernel_name": "k", "problem_size": 1, "tune_params_keys": list(params),
                                "tune_params": params, "objective": "time", "cache": rows}))


def measured(arguments, folder, cores, limit=None):
    """One run in a process of its own: what it says, its wall and its processor time (s). None instead of what it says where it
    did not end in ``limit`` s."""
    environment = {**os.environ, "POCL_CACHE_DIR": str(folder / "pocl"), "XDG_CACHE_HOME": str(folder / "cache"),
                   "PYOPENCL_NO_CACHE": "1"}
    (folder / "pocl").mkdir(parents=True, exist_ok=True)
    (folder / "cache").mkdir(exist_ok=True)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        run = subprocess.run(["taskset", "-c", ",".join(str(c) for c in range(cores)), sys.executable, __file__, "--inside", *arguments],
                             env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, limit, None
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(run.stdout.splitlines()[-1]), wall, spent


def compare_opencl(options):
    print("| kernel | tool | cold wall (s) | cold processor time (s) | warm wall (s) | warm processor time (s) |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for kernel in problems(options.scale):
        figures = {}
        for _ in range(options.runs):
            for name in ("kernel_tuner", "ergotune"):
                with tempfile.TemporaryDirectory() as folder:
                    for heat in ("cold", "warm"):
                        said, wall, spent = measured(["opencl", name, kernel, str(options.scale)], Path(folder), options.cores)
                        figures.setdefault((name, heat), []).append((wall, spent))
        for name in ("kernel_tuner", "ergotune"):
            cells = [f"{statistics.median(run[i] for run in figures[name, heat]):.2f}" for heat in ("cold", "warm") for i in (0, 1)]
            print(f"| {kernel}, {said['configurations']} configurations | {name} | {' | '.join(cells)} |", flush=True)


def compare_simulation(options):
    # Kernel Tuner's strategies evaluate the same configuration again and again, and its rows count that
    print("| strategy | tool | evaluations a second | different configurations | a second | beside them (s) |\n"
          "| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.json"
        write_cache(file)
        for strategy in options.strategies or SIMULATED:
            for name in ("kernel_tuner", "ergotune"):
                runs = [measured(["simulation", name, strategy, str(file)], Path(folder), 1, options.limit)[0]
                        for _ in range(options.runs)]
                if None in runs:
                    print(f"| {strategy} | {name} | did not end in {options.limit:.0f} s | | | |", flush=True)
                    continue
                rate, different, rated, fixed = (statistics.median(run[k] for run in runs) for k in (
                    "per_second", "different", "different_per_second", "fixed_s"))
                print(f"| {strategy} | {name} | {rate:.0f} | {different:.0f} | {rated:.0f} | {fixed:.2f} |", flush=True)


def main():
    if "--inside" in sys.argv:
        warnings.simplefilter("ignore")
        what, *arguments = sys.argv[sys.argv.index("--inside") + 1:]
        if what == "opencl":
            said = run_opencl(arguments[0], arguments[1], float(arguments[2]))
        else:
            said = run_simulation(*arguments)
        print(json.dumps(said))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["opencl", "simulation"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the configurations")
    parser.add_argument("--strategies", nargs="*", help="of the simulation (all)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one simulation")
    options = parser.parse_args()
    if "opencl" in options.what:
        compare_opencl(options)
    if "simulation" in options.what:
        compare_simulation(options)


if __name__ == "__main__":
    main()
