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
from functools import lru_cache
from pathlib import Path


TIMES = ("compile_time", "verification_time", "benchmark_time")


def read(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        text = file.read()
    try:
        return json.loads(text)
    except json.JSONDecodeError:  # a cache that is still written to
        return json.loads(text.rstrip().rstrip(",") + "}}")


def space_name(path):
    name = path.name
    for ending in (".gz", ".json"):
        name = name.removesuffix(ending)
    return name


def prepared_cache(path, folder):
    """The cache with an objective, and with benchmark_time set to what scoring counts: its kernel times and the framework's."""
    target = Path(folder) / (space_name(path) + ".json")
    if target.exists():
        return target
    data = read(path)
    measured = [entry for entry in data["cache"].values() if "nvml_energy" in entry]
    data.setdefault("objective", "nvml_energy" if measured else "time")
    data.setdefault("problem_size", [1])
    for name, values in data["tune_params"].items():  # a recording that was not finished lacks some
        data["tune_params"][name] = [v for v in values if any(entry[name] == v for entry in data["cache"].values())]
    for entry in data["cache"].values():
        for part in TIMES:
            entry.setdefault(part, 0)
        times = entry.get("times", [])
        entry["benchmark_time"] = sum(t for t in times if isinstance(t, (int, float)))
        entry["benchmark_time"] += entry.get("framework_time", 0)
    partial = target.with_suffix(f".{os.getpid()}")
    data["cache"] = data.pop("cache")  # last, where Kernel Tuner looks for the end of a closed cache
    partial.write_text(json.dumps(data))
    partial.rename(target)
    return target


@lru_cache
def document(cache):
    """A prepared cache, and its configurations."""
    data = json.loads(cache.read_text())
    return data, {tuple(entry[name] for name in data["tune_params"]) for entry in data["cache"].values()}


def evaluated_by_kernel_tuner(cache, strategy, seed, strategy_options):
    """The configurations that a strategy evaluates, each once and in order: [[seconds, value or None], ...]."""
    import numpy
    import kernel_tuner
    from kernel_tuner.runners.simulation import SimulationRunner

    random.seed(seed)
    numpy.random.seed(seed)
    data, known = document(cache)
    entries = data["cache"]
    evaluations, seen = [], set()
    clock = {"simulated": 0.0, "own": 0.0, "mark": time.perf_counter()}
    original = SimulationRunner.run

    def recorded(configuration):
        return tuple(configuration.values()) in known

    def recording_run(self, parameter_space, tuning_options):
        parameter_space = list(parameter_space)
        clock["own"] += time.perf_counter() - clock["mark"]
        results = original(self, parameter_space, tuning_options)
        for element, result in zip(parameter_space, results):
            key = ",".join(map(str, element))
            if result is None or key in seen or key not in entries:
                continue
            seen.add(key)
            entry = entries[key]
            clock["simulated"] += sum(entry[part] for part in TIMES) / 1e3
            value = entry.get(data["objective"])
            ok = isinstance(value, (int, float)) and value < 1e30
            evaluations.append([clock["simulated"] + clock["own"], value if ok else None])
        clock["mark"] = time.perf_counter()
        return results

    SimulationRunner.run = recording_run
    stdout = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        kernel_tuner.tune_kernel(
            data["kernel_name"], "// replayed", tuple(data["problem_size"]), [], data["tune_params"],
            restrictions=[recorded], lang="CUDA", strategy=strategy, objective=data["objective"],
            objective_higher_is_better=False, cache=str(cache), simulation_mode=True, quiet=True, strategy_options=strategy_options)
    except Exception as error:  # a strategy that gives up has still spent what it spent
        if not evaluations:
            raise
        print(f"{strategy} on {cache.name}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        SimulationRunner.run = original
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nowhere)
    return evaluations


def one_run(job):
    cache, strategy, seed, budget, draws = job
    # its annealing fits its schedule to max_fevals: the same number our strategies are told to expect
    found = evaluated_by_kernel_tuner(cache, strategy, seed, {"time_limit": budget, "max_fevals": math.ceil(1.1 * draws)})
    return [[seconds, value and value / 1e3] for seconds, value in found]  # ms


def main():
    budgets_file, output, strategies, repeats = sys.argv[1:5]
    caches = [Path(p) for p in sys.argv[5:]]
    budgets = json.loads(Path(budgets_file).read_text())["spaces"]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor() as pool:
        jobs = []
        for strategy in strategies.split(","):
            for path in caches:
                space = budgets[space_name(path)]
                jobs += [(prepared_cache(path, folder), strategy, seed, space["budget_seconds"], space["draws_to_cutoff"])
                         for seed in range(1, int(repeats) + 1)]
        runs = {}
        for (cache, strategy, *_), evaluations in zip(jobs, pool.map(one_run, jobs)):
            runs.setdefault("kernel_tuner:" + strategy, {}).setdefault(space_name(cache), []).append(evaluations)
        Path(output).write_text(json.dumps(runs))


if __name__ == "__main__":
    main()
