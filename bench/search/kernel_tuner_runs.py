"""Runs Kernel Tuner's strategies in its simulation mode and writes down every evaluation, for `ergotune score --runs`.

Usage: kernel_tuner_runs.py BUDGETS OUTPUT STRATEGIES REPEATS CACHE...

BUDGETS is the JSON document of `ergotune score --json` over the same caches (its "spaces" give each space's budget);
OUTPUT is {"kernel_tuner:NAME": {"SPACE": [[[seconds, value or null], ...] per run]}}. Times are simulated: what the
cache recorded plus the strategy's own real time, as in docs/strategies.md. A revisit costs nothing here, which favours
Kernel Tuner slightly.
"""

import gzip
import json
import math
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def read(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return json.load(file)


def space_name(path):
    name = path.name
    for ending in (".gz", ".json"):
        name = name.removesuffix(ending)
    return name


def prepared_cache(path, folder):
    """The cache with benchmark_time set to what scoring counts: its kernel times and the framework's."""
    target = Path(folder) / (space_name(path) + ".json")
    if target.exists():
        return target
    data = read(path)
    for entry in data["cache"].values():
        times = entry.get("times", [])
        entry["benchmark_time"] = sum(t for t in times if isinstance(t, (int, float)))
        entry["benchmark_time"] += entry.get("framework_time", 0)
    partial = target.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(data))
    partial.rename(target)
    return target


def restrictions_beside(path, kernel):
    problem = path.parent / f"{kernel}.T1.json"
    if not problem.exists():
        return None
    document = json.loads(problem.read_text())
    return [c["Expression"] for c in document["ConfigurationSpace"].get("Conditions", [])]


def one_run(job):
    path, folder, strategy, seed, budget, draws = job
    import numpy
    import kernel_tuner
    from kernel_tuner.runners.simulation import SimulationRunner

    random.seed(seed)
    numpy.random.seed(seed)
    path = Path(path)
    cache = prepared_cache(path, folder)
    data = json.loads(cache.read_text())
    entries = data["cache"]
    evaluations, seen = [], set()
    clock = {"simulated": 0.0, "own": 0.0, "mark": time.perf_counter()}
    original = SimulationRunner.run

    def recording_run(self, parameter_space, tuning_options):
        parameter_space = list(parameter_space)
        clock["own"] += time.perf_counter() - clock["mark"]
        results = original(self, parameter_space, tuning_options)
        for element, result in zip(parameter_space, results):
            key = ",".join(str(v) for v in element)
            if result is None or key in seen or key not in entries:
                continue
            seen.add(key)
            entry = entries[key]
            clock["simulated"] += (entry["compile_time"] + entry["verification_time"] + entry["benchmark_time"]) / 1e3
            value = entry.get(data.get("objective", "time"))
            ok = isinstance(value, (int, float)) and value < 1e30
            evaluations.append([clock["simulated"] + clock["own"], value / 1e3 if ok else None])
        clock["mark"] = time.perf_counter()
        return results

    SimulationRunner.run = recording_run
    stdout = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    kernel = path.name.split("_")[0]
    try:
        kernel_tuner.tune_kernel(
            data["kernel_name"], "// replayed", tuple(data["problem_size"]), [], data["tune_params"],
            restrictions=restrictions_beside(path, kernel), lang="CUDA", strategy=strategy, cache=str(cache),
            simulation_mode=True, quiet=True,
            # its annealing fits its schedule to max_fevals: the same number our strategies are told to expect
            strategy_options={"time_limit": budget, "max_fevals": min(math.ceil(1.1 * draws), len(entries))})
    except Exception as error:  # a strategy that gives up has still spent what it spent
        print(f"{strategy} on {path.name}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        SimulationRunner.run = original
        os.dup2(stdout, 1)
        os.close(stdout)
    return evaluations


def main():
    budgets_file, output, strategies, repeats = sys.argv[1:5]
    caches = [Path(p) for p in sys.argv[5:]]
    budgets = json.loads(Path(budgets_file).read_text())["spaces"]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor() as pool:
        for path in caches:
            prepared_cache(path, folder)
        jobs = [(str(path), folder, strategy, seed, budgets[space_name(path)]["budget_seconds"],
                 budgets[space_name(path)]["draws_to_cutoff"])
                for strategy in strategies.split(",") for path in caches for seed in range(1, int(repeats) + 1)]
        runs = {}
        for job, evaluations in zip(jobs, pool.map(one_run, jobs)):
            runs.setdefault("kernel_tuner:" + job[2], {}).setdefault(space_name(Path(job[0])), []).append(evaluations)
        Path(output).write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
