#!/usr/bin/env python3
"""Does a search win by learning from counters, as KTT's profile-based searcher does? Tried on recorded spaces with counters.

    profile_search.py RECORDING.csv... [--ergotune PROGRAM] [--seeds 40] [--budget 30]

Every searcher sees the same recorded configurations (a replay): ten at random, then one after the other. Compared are
  random        no model
  model         a Gaussian process from parameters to log(time), expected improvement
  profile       two steps: from parameters to every counter, from counters to log(time), both learnt from what was measured
  profile+      the same with parameters beside the counters in the second step
  ideal         from the *true* counters of every configuration: what perfect knowledge of counters would be worth
  static        parameters with what the compiler says (registers, occupancy, memory), which is known without a run
  auto          ergotune's own, by replay
Told is the mean over seeds of best-so-far over the best of all, less 1, after 15, 20 and 30 evaluations, in percent. Needs NumPy.
"""

import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess

import numpy as np

COMPILER = ("registers", "occupancy", "local_bytes", "shared_bytes")
MARKS = (15, 20, 30)


def read(file):
    with open(file, newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["status"] in ("ok", "not_converged")]
    names = list(rows[0])
    parameters = names[:names.index("status")]
    counters = [n for n in names[names.index("status"):] if n.endswith("_n") and n[:-2] not in ("time", "energy", "power", "temperature", "error", *COMPILER)]
    counters = [n[:-2] for n in counters if "clock" not in n]

    def matrix(columns):
        table = []
        for name in columns:
            values = [row[name] for row in rows]
            try:
                table.append([float(v or "nan") for v in values])
            except ValueError:
                kinds = sorted(set(values))
                table.append([kinds.index(v) for v in values])
        found = np.array(table).T
        return found[:, (np.nanstd(found, axis=0) > 0) & np.isfinite(found).all(axis=0)]

    return matrix(parameters), matrix(counters), matrix([n for n in COMPILER if n in names]), np.log([float(r["time"]) for r in rows])


def scaled(known, wanted):
    """Columns with mean 0 and deviation 1 of what is known."""
    middle, deviation = known.mean(axis=0), known.std(axis=0) + 1e-12
    return (known - middle) / deviation, (wanted - middle) / deviation


def predict(x, y, wanted):
    """Mean and deviation of a Gaussian process (Matern 5/2) at `wanted`; of several length scales the likeliest. `y` may have
    several columns, which share them."""
    x, wanted = scaled(x, wanted)
    y = y.reshape(len(y), -1)
    middle, deviation = y.mean(axis=0), y.std(axis=0) + 1e-12
    z = (y - middle) / deviation

    def kernel(a, b, length):
        r = np.sqrt(5 * ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2) / a.shape[1]) / length
        return (1 + r + r * r / 3) * np.exp(-r)

    best = None
    for length in (0.5, 1.0, 2.0, 4.0):
        for noise in (1e-3, 3e-2):
            lower = np.linalg.cholesky(kernel(x, x, length) + noise * np.eye(len(x)))
            weights = np.linalg.solve(lower.T, np.linalg.solve(lower, z))
            likelihood = -0.5 * (z * weights).sum() - z.shape[1] * np.log(np.diag(lower)).sum()
            if best is None or likelihood > best[0]:
                best = likelihood, length, lower, weights
    _, length, lower, weights = best
    cross = kernel(wanted, x, length)
    spread = np.sqrt(np.maximum(1 - (np.linalg.solve(lower, cross.T) ** 2).sum(axis=0), 1e-9))
    return middle + deviation * (cross @ weights), spread[:, None] * deviation


def expected_improvement(x, y, wanted):
    mean, deviation = (column[:, 0] for column in predict(x, y, wanted))
    z = (y.min() - mean) / deviation
    phi = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
    return deviation * (z * below + phi)


def choose(kind, data, seen, left):
    parameters, counters, compiler, y = data
    if kind == "random":
        return 0
    if kind in ("profile", "profile+"):
        told = predict(parameters[seen], counters[seen], parameters[left])[0]
        if kind == "profile":
            return int(np.argmax(expected_improvement(counters[seen], y[seen], told)))
        both = np.hstack([parameters[seen], counters[seen]]), np.hstack([parameters[left], told])
        return int(np.argmax(expected_improvement(both[0], y[seen], both[1])))
    x = {"ideal": counters, "model": parameters, "static": np.hstack([parameters, compiler])}[kind]
    return int(np.argmax(expected_improvement(x[seen], y[seen], x[left])))


def search(kind, data, seed, budget):
    y = data[3]
    order = list(np.random.default_rng(seed).permutation(len(y)))
    seen, left = order[:10], order[10:]
    while len(seen) < budget and left:
        seen.append(left.pop(choose(kind, data, seen, left)))
    running = np.minimum.accumulate(y[seen])
    return [100 * (np.exp(running[min(mark, len(running)) - 1] - y.min()) - 1) for mark in MARKS]


def auto(program, file, data, seeds, budget):
    """ergotune's auto over the same recording."""
    found = []
    for seed in range(seeds):
        line = []
        for mark in MARKS:
            done = subprocess.run([program, "tune", ROOT / "examples/gemm/gemm.toml" if "gemm" in file.stem and "dgemm" not in file.stem else PROBLEM,
                                   "--device", f"replay:{file}", "--objective", "time", "--strategy", "auto", "--seed", str(seed + 1),
                                   "--budget", str(mark), "--no-confirm", "--no-store", "-q", "--json", "--no-early-stop"], capture_output=True, text=True)
            best = json.loads(done.stdout)["best"]
            line.append(100 * (best["quantities"]["time"]["value"] / np.exp(data[3].min()) - 1))
        found.append(line)
    return found


ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBLEM = ROOT / "examples/dgemm_beast/dgemm.toml"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=pathlib.Path)
    parser.add_argument("--ergotune", default=str(ROOT / "build/release/ergotune"))
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--auto-seeds", type=int, default=10)
    arguments = parser.parse_args()
    for file in arguments.recordings:
        data = read(file)
        print(f"{file.name}: {len(data[3])} configurations, {data[0].shape[1]} parameters, {data[1].shape[1]} counters that vary")
        for kind in ("random", "model", "profile", "profile+", "ideal", "static"):
            runs = [search(kind, data, seed, max(MARKS)) for seed in range(arguments.seeds)]
            tell(kind, runs)
        if arguments.auto_seeds:
            tell("auto", auto(arguments.ergotune, file.resolve(), data, arguments.auto_seeds, max(MARKS)))


def tell(kind, runs):
    cells = []
    for column in zip(*runs):
        error = statistics.stdev(column) / len(column) ** 0.5
        cells.append(f"{statistics.mean(column):6.2f} +- {error:4.2f}")
    print(f"  {kind:9} " + "  ".join(f"after {mark}: {cell} %" for mark, cell in zip(MARKS, cells)), flush=True)


if __name__ == "__main__":
    main()
