"""Caches: read, continued here and there, refused where they are another's; simulation from them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kernel_tuner as theirs
import kernel_tuner.file_utils as theirs_files
import numpy as np
import pytest

import ergotune.kernel_tuner as ours
from ergotune.kernel_tuner import file_utils as files

SOURCE = "__kernel void f(__global float *y) { y[get_global_id(0)] = 1.0f; }"
X = np.ones(4096, np.float32)
SIZES = [16, 32, 64, 128, 256]
COMMON = {"lang": "OpenCL", "quiet": True, "iterations": 2}


def tune(kt, sizes, cache, **more):
    return kt.tune_kernel("f", SOURCE, 4096, [np.zeros_like(X)], {"block_size_x": sizes}, cache=str(cache), **COMMON, **more)[0]


def rows(path):
    return json.loads(Path(path).read_text())["cache"]


def test_a_cache_goes_from_them_to_us_and_back_without_a_row_lost_or_doubled(tmp_path):
    cache = tmp_path / "c.json"
    tune(theirs, SIZES, cache, strategy="random_sample", strategy_options={"max_fevals": 2})
    first = rows(cache)
    assert len(first) == 2
    found = tune(ours, SIZES, cache)
    assert len(found) == 5 and len(rows(cache)) == 5
    for key, row in first.items():
        assert rows(cache)[key]["times"] == row["times"], "what is known is not measured again"
        assert next(r for r in found if str(r["block_size_x"]) == key)["compile_time"] == 0
    before = cache.read_text()
    again = tune(theirs, SIZES, cache)
    assert {r["block_size_x"] for r in again} == set(SIZES)
    assert rows(cache) == json.loads(before)["cache"]


CONTINUES = f"""
import sys, time, numpy as np, ergotune.kernel_tuner as kt
cache, sizes = sys.argv[1], list(map(int, sys.argv[2:]))
kt.tune_kernel("f", {SOURCE!r}, 4096, [np.zeros(4096, np.float32)], {{"block_size_x": sizes}}, cache=cache,
               metrics={{"m": lambda row: time.sleep(0.1) or 1.0}}, lang="OpenCL", quiet=True, iterations=2)
"""


def killed_at(rows_in_file, cache, sizes):
    """Continues the cache in a process of its own, killed (-9) as soon as the file has so many rows; gives what it left."""
    session = subprocess.Popen([sys.executable, "-c", CONTINUES, str(cache), *map(str, sizes)], env=os.environ)
    deadline = time.monotonic() + 120
    while cache.read_text().count('"time":') < rows_in_file:
        assert session.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    session.kill()
    assert session.wait() == -signal.SIGKILL
    return cache.read_text()


def test_two_kills_in_the_middle_of_a_shared_cache_lose_and_double_nothing(tmp_path):
    """StartedMessage by Kernel Tuner, continued here, killed, continued, killed while a row was being written, ended by Kernel Tuner."""
    cache, sizes = tmp_path / "c.json", [2**i for i in range(12)]

    def distinct(pairs):
        assert len(pairs) == len(dict(pairs)), "a row stands twice in the file"
        return dict(pairs)

    def kept(text):
        closed = text.rstrip().rstrip(",") + "}\n}"
        return json.loads(closed, object_pairs_hook=distinct)["cache"]

    tune(theirs, sizes, cache, strategy="random_sample", strategy_options={"max_fevals": 3})
    known = rows(cache)
    assert len(known) == 3
    left = kept(killed_at(6, cache, sizes))
    assert len(left) >= 6 and {key: left[key]["times"] for key in known} == {key: row["times"] for key, row in known.items()}
    known = left
    text = killed_at(9, cache, sizes)
    left = kept(text)
    assert {key: left[key]["times"] for key in known} == {key: row["times"] for key, row in known.items()}
    torn = list(left)[-1]  # half of the last row, as a machine that lost its power leaves it
    assert torn not in known
    cache.write_text(text[: text.rindex('"time":')])
    known = {key: row for key, row in left.items() if key != torn}
    assert len(tune(ours, sizes[:-1], cache)) == 11
    again = tune(theirs, sizes, cache)
    assert sorted(row["block_size_x"] for row in again) == sizes
    final = json.loads(cache.read_text(), object_pairs_hook=distinct)["cache"]
    assert len(final) == 12 and {key: final[key]["times"] for key in known} == {key: row["times"] for key, row in known.items()}


@pytest.mark.parametrize("change, words", [
    ({"kernel_name": "g"}, "different kernel"), ({"device_name": "Another"}, "different device"),
    ({"problem_size": 5000}, "different problem_size"), ({"tune_params_keys": ["other"]}, "different tunable parameters")])
def test_another_kernels_cache_is_refused_and_left_as_it_is(tmp_path, change, words):
    cache = tmp_path / "c.json"
    tune(ours, [32], cache)
    document = {**json.loads(cache.read_text()), **change}
    cache.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=words):
        tune(ours, [32], cache)
    assert json.loads(cache.read_text()) == document


def test_failures_are_error_objects_in_rows_and_words_in_the_cache(tmp_path):
    cache = tmp_path / "c.json"
    source = "__kernel void f(__global float *y) {\n#if n == 2\nnonsense\n#endif\ny[get_global_id(0)] = 1.0f; }"
    results, _ = ours.tune_kernel("f", source, 4096, [np.zeros_like(X)], {"block_size_x": [32], "n": [1, 2]},
                                  cache=str(cache), **COMMON)
    failed = next(r for r in results if r["n"] == 2)
    from ergotune.kernel_tuner.util import CompilationFailedConfig

    assert isinstance(failed["__error__"], CompilationFailedConfig) and isinstance(failed["time"], CompilationFailedConfig)
    assert rows(cache)["32,2"]["__error__"] == "CompilationFailedConfig"


def test_simulation_is_of_the_space_that_was_asked_for(tmp_path):
    cache = tmp_path / "c"
    measured = tune(ours, SIZES, cache, metrics={"twice": "2 * time"})
    arguments = ("f", SOURCE, 4096, [np.zeros_like(X)], {"block_size_x": [64, 128]})
    results, env = ours.tune_kernel(*arguments, cache=str(cache), simulation_mode=True, quiet=True,
                                    metrics={"rate": lambda p: 1 / p["time"]})
    assert {r["block_size_x"] for r in results} == {64, 128}
    for row in results:
        original = next(r for r in measured if r["block_size_x"] == row["block_size_x"])
        assert row["times"] == original["times"] and row["twice"] == original["twice"] and row["rate"] == 1 / row["time"]
    assert env["simulation"] and env["simulated_time"] > 0
    restricted, _ = ours.tune_kernel(*arguments, cache=str(cache), simulation_mode=True, quiet=True,
                                     restrictions=["block_size_x > 64"])
    assert [r["block_size_x"] for r in restricted] == [128]
    with pytest.raises(ValueError, match="different kernel"):
        ours.tune_kernel("g", *arguments[1:], cache=str(cache), simulation_mode=True, quiet=True)
    with pytest.raises(ValueError, match="not in cache"):
        ours.tune_kernel(*arguments[:4], {"block_size_x": [65]}, cache=str(cache), simulation_mode=True, quiet=True)
    assert len(ours.tune_cache(str(cache) + ".json", quiet=True)[0]) == 5


def big_cache(path, side=40):
    keys = ["a", "b", "c"]
    values = {"a": list(range(side)), "b": list(range(side)), "c": [1, 2]}
    document = {"device_name": "D", "kernel_name": "k", "problem_size": 1, "tune_params_keys": keys, "tune_params": values,
                "objective": "time", "cache": {}}
    for a in values["a"]:
        for b in values["b"]:
            for c in values["c"]:
                time_ms = 1 + (a - 7) ** 2 + (b - 3) ** 2 + c
                document["cache"][f"{a},{b},{c}"] = {"a": a, "b": b, "c": c, "time": time_ms, "times": [time_ms],
                                                      "compile_time": 1.0, "verification_time": 0.0, "benchmark_time": 1.0}
    path.write_text(json.dumps(document))
    return values


@pytest.mark.parametrize("strategy, most", [("random_sample", 320), ("mls", 100), ("greedy_ils", 100), ("genetic_algorithm", 320),
                                            ("brute_force", 3200)])
def test_without_max_fevals_a_strategy_evaluates_what_it_does_there(tmp_path, strategy, most):
    values = big_cache(tmp_path / "c.json")
    results, _ = ours.tune_kernel("k", "", 1, [], values, cache=tmp_path / "c.json", simulation_mode=True, quiet=True,
                                  strategy=strategy)
    assert len(results) == most


def test_seeds_repeat_and_none_is_another_each_time(tmp_path):
    values = big_cache(tmp_path / "c.json")

    def order(seed):
        results, _ = ours.tune_kernel("k", "", 1, [], values, cache=tmp_path / "c.json", simulation_mode=True, quiet=True,
                                      strategy="random_sample", strategy_options={"max_fevals": 20}, seed=seed)
        return [(r["a"], r["b"], r["c"]) for r in results]

    assert order(5) == order(5)
    assert order(None) != order(None)


def test_options_are_checked_and_what_has_no_counterpart_is_named(tmp_path):
    values = big_cache(tmp_path / "c.json")

    def run(**more):
        return ours.tune_kernel("k", "", 1, [], values, cache=tmp_path / "c.json", simulation_mode=True, quiet=True, **more)[0]

    with pytest.raises(ValueError, match="nosuch"):
        run(strategy="pso", strategy_options={"nosuch": 1})
    with pytest.raises(ValueError, match="nosuch"):
        run(strategy="nosuch")
    with pytest.raises(ValueError, match="x0"):
        run(strategy="random_sample", strategy_options={"x0": [1, 1, 1]})
    with pytest.warns(UserWarning, match="c1"):
        run(strategy="pso", strategy_options={"c1": 2.0, "max_fevals": 5})
    found = run(strategy="simulated_annealing", strategy_options={"x0": [39, 39, 2], "max_fevals": 10})
    assert (found[0]["a"], found[0]["b"], found[0]["c"]) == (39, 39, 2) and len(found) == 10


def test_t4_documents_hold_what_kernel_tuners_hold(tmp_path):
    results, params = tune(ours, [16, 32], tmp_path / "c.json"), {"block_size_x": [16, 32]}
    files.store_output_file(tmp_path / "results", results, params)
    assert json.loads((tmp_path / "results.json").read_text()) == theirs_files.get_t4_results(results, params)
    files.store_metadata_file(tmp_path / "metadata.json")
    here, there = json.loads((tmp_path / "metadata.json").read_text()), theirs_files.get_t4_metadata()
    assert here.keys() == there.keys() and here["metadata"].keys() == there["metadata"].keys()
    assert all(here["metadata"][part].keys() == there["metadata"][part].keys() for part in ("hardware", "environment"))
