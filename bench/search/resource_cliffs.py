#!/usr/bin/env python3
"""Compares strategies on drawn problems whose optimum lies beside failures.

    resource_cliffs.py ERGOTUNE [--spaces 10] [--first 1] [--seeds 10] [--budgets 25,50,100,200,400]
                                [--strategies auto,bayesian,genetic,random]

Each problem is a tiled kernel on a simulated device: tiles raise the efficiency and use up registers and shared memory,
past whose limits a launch fails. How much they use up is drawn, and four parameters have no effect but noise. The
values are simulated. Printed are, per budget, the medians over the seeds of the best energy found, relative to the
best that any of the runs on that problem has found, which is an upper bound of the optimum.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile

PROBLEM = """name = "resource_cliff_{seed}"
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
"""


def draw(seed):
    r = random.Random(seed)
    return PROBLEM.format(seed=seed, base=r.randint(16, 40), per_tile=r.randint(1, 4), per_vector=r.randint(2, 10),
                          depth=r.choice([8, 12, 16, 24, 32]), tile=r.uniform(0.5, 2.5), vector=r.uniform(0.1, 0.8),
                          unroll=r.choice([1, 2, 4, 8]))


def best_energy(command, problem, strategy, budget, seed):
    done = subprocess.run([command, "tune", problem, "--device", "sim:a100", "--strategy", strategy, "--budget",
                           str(budget), "--seed", str(seed), "--no-early-stop", "--no-store", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{problem}, {strategy}, seed {seed}: {done.stderr}")
    return json.loads(done.stdout)["best"]["objective"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--spaces", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budgets", default="25,50,100,200,400")
    parser.add_argument("--strategies", default="auto,bayesian,genetic,random")
    options = parser.parse_args()
    budgets, strategies = [int(b) for b in options.budgets.split(",")], options.strategies.split(",")
    print(f"% above the best found, medians of {options.seeds} seeds, after {options.budgets} evaluations (simulated)")
    with tempfile.TemporaryDirectory() as folder:
        for space in range(options.first, options.first + options.spaces):
            problem = os.path.join(folder, f"{space}.toml")
            with open(problem, "w", encoding="utf-8") as file:
                file.write(draw(space))
            found = {(s, b): [best_energy(options.command, problem, s, b, seed + 1) for seed in range(options.seeds)]
                     for s in strategies for b in budgets}
            optimum = min(min(values) for values in found.values())
            for s in strategies:
                losses = [100 * (statistics.median(found[s, b]) / optimum - 1) for b in budgets]
                print(f"space {space:<4} {s:<10}", *(f"{loss:7.2f}" for loss in losses), flush=True)


if __name__ == "__main__":
    main()
