"""The same problems through Kernel Tuner and through ergotune.kernel_tuner, side by side."""

import time

import numpy as np
import pytest

import kernel_tuner as theirs

import ergotune.kernel_tuner as ours
from kernel_tuner_problems import PROBLEMS, search_with_budget

table = []


def configurations(results):
    skip = {"time", "times", "timestamp"}
    names = [k for k in results[0] if k not in skip]
    keys = [k for k in names if isinstance(results[0][k], (int, str)) and not k.endswith("_time")]
    return keys


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.__name__)
def test_same_spaces_and_both_verified(problem):
    started = time.perf_counter()
    expected, _ = problem(theirs)
    their_seconds = time.perf_counter() - started
    started = time.perf_counter()
    found, env = problem(ours)
    our_seconds = time.perf_counter() - started
    parameters = [k for k in found[0] if k in expected[0] and k not in
                  ("time", "times", "timestamp", "GB/s", "ns_per_pixel", "starts", "finishes", "seen_block") and not k.endswith("_time")]
    valid = {tuple(r[k] for k in parameters) for r in expected if isinstance(r["time"], float)}
    assert {tuple(r[k] for k in parameters) for r in found if isinstance(r["time"], float)} == valid
    assert len(valid) == len(expected), "Kernel Tuner's own verification failed"
    assert all(len(r["times"]) > 0 and r["time"] > 0 for r in found)
    if "GB/s" in expected[0]:
        assert all(np.isclose(r["GB/s"], 4 * 60_000 / (r["time"] / 1e3) / 1e9) for r in found)
    if "starts" in expected[0]:
        assert all(r["starts"] == r["finishes"] and r["starts"] >= 1 and r["seen_block"] == r["block_size_x"] for r in found)
    # compiling runs ahead in other processes here, so ergotune's share is what it accounts itself; with callables
    # (verify, observers) everything runs in this process and one kernel at a time, and the difference holds as for theirs
    def rest(seconds, rows):
        spent = sum(r[k] for r in rows for k in ("compile_time", "verification_time", "benchmark_time"))
        return (1e3 * seconds - spent) / len(rows)

    accounted = sum(r["framework_time"] for r in found) / len(found)
    table.append((problem.__name__, len(found), rest(their_seconds, expected), accounted or rest(our_seconds, found)))


def test_a_budget_is_kept():
    results, _ = search_with_budget(ours)
    assert len(results) == 12
    assert len({(r["block_size_x"], r["work"]) for r in results}) == 12


def test_wrong_results_are_failures_not_winners():
    x = np.ones(1024, np.float32)
    source = """__kernel void f(__global float *y) { y[get_global_id(0)] = wrong ? 2.0f : 1.0f; }"""
    results, _ = ours.tune_kernel("f", source, 1024, [np.zeros_like(x)], {"block_size_x": [64], "wrong": [0, 1]},
                                  answer=[x], lang="OpenCL", quiet=True)
    by_wrong = {r["wrong"]: r["time"] for r in results}
    assert isinstance(by_wrong[0], float)
    assert by_wrong[1] == "RuntimeFailedConfig"


def test_run_kernel_returns_what_the_kernel_wrote():
    x = np.arange(256, dtype=np.float32)
    source = "__kernel void twice(__global float *y, __global const float *x) { int i = get_global_id(0); y[i] = 2 * x[i]; }"
    out = ours.run_kernel("twice", source, 256, [np.zeros_like(x), x], {"block_size_x": 64}, lang="OpenCL")
    np.testing.assert_allclose(out[0], 2 * x)


def test_two_objectives_give_a_front():
    x = np.ones(4096, np.float32)
    source = "__kernel void f(__global float *y) { y[get_global_id(0)] = 1.0f; }"
    results, _ = ours.tune_kernel("f", source, 4096, [np.zeros_like(x)], {"block_size_x": [32, 64, 128, 256]}, answer=[x],
                                  metrics={"threads": lambda p: p["block_size_x"]}, objectives={"time": False, "threads": True},
                                  lang="OpenCL", quiet=True)
    assert len(results) == 4


def test_what_is_not_supported_says_so_by_name():
    with pytest.raises(ours.NotSupported, match="texmem_args"):
        ours.tune_kernel("f", "__kernel void f() {}", 1, [], {"block_size_x": [1]}, texmem_args={"a": 1})
    with pytest.raises(ours.NotSupported, match="parallel"):
        ours.tune_kernel("f", "__kernel void f() {}", 1, [], {"block_size_x": [1]}, parallel=True)
    with pytest.raises(ours.NotSupported, match="cuda_sm_percentage"):
        ours.tune_kernel("f", "__kernel void f() {}", 1, [], {"block_size_x": [1], "cuda_sm_percentage": [90]})


def test_cache_written_here_replays_here_and_there(tmp_path):
    x = np.ones(8192, np.float32)
    source = "__kernel void f(__global float *y) { y[get_global_id(0)] = 1.0f; }"
    arguments = ("f", source, 8192, [np.zeros_like(x)], {"block_size_x": [32, 64, 128, 256]})
    cache = tmp_path / "cache.json"
    results, _ = ours.tune_kernel(*arguments, lang="OpenCL", quiet=True, cache=str(cache), objective="time")
    best = min(results, key=lambda r: r["time"])["block_size_x"]
    replayed, _ = ours.tune_kernel(*arguments, lang="OpenCL", quiet=True, cache=str(cache), simulation_mode=True)
    assert min(replayed, key=lambda r: r["time"])["block_size_x"] == best
    simulated, _ = theirs.tune_kernel(*arguments, lang="OpenCL", quiet=True, cache=str(cache), simulation_mode=True)
    assert min(simulated, key=lambda r: r["time"])["block_size_x"] == best


def teardown_module():
    if not table:
        return
    print(f"\n{'problem':28} {'configurations':>14} {'Kernel Tuner':>14} {'ergotune':>12}   tuner time, ms per configuration")
    for name, count, their, our in table:
        print(f"{name:28} {count:14} {their:14.2f} {our:12.3f}")
