"""Triton kernels with ergotune's decorator, in Triton's interpreter on the CPU."""

import json
import os
import subprocess
import sys
import time

import pytest

try:
    import torch
except ImportError:
    import host_tensors as torch
os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are decorated, those of Triton's own library included
triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

import ergotune.triton  # noqa: E402

QUICK = dict(max_seconds=0.02, min_repeats=3, precision=0.5, confirm=False)
SIZE = 500


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ERGOTUNE_DATA_DIR", str(tmp_path / "data"))


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr, WAY: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    value = 2 * tl.load(x + i, mask=inside)
    if WAY == "wrong":
        value += 1
    if WAY == "idle":
        inside = i < 0
    tl.store(out + i, value, mask=inside)


def harm(full):
    if full["WAY"] == "wrong":
        os.abort()
    if full["WAY"] == "idle":
        time.sleep(1000)


@ergotune.triton.autotune([triton.Config({"BLOCK": block, "WAY": way}, pre_hook=harm)
                           for way, block in (("right", 64), ("right", 512), ("wrong", 64), ("idle", 64))],
                          key=["n"], in_process=False, time_limit=15, **QUICK)
@triton.jit
def harmful(x, out, n, BLOCK: tl.constexpr, WAY: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def accumulate(x, out, n, BLOCK: tl.constexpr, HALF: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < (n // 2 if HALF else n), other=0)))


def grid(meta):
    return (triton.cdiv(SIZE, meta["BLOCK"]),)


def configs(ways=("right", "wrong", "idle"), blocks=(64, 512), **options):
    return [triton.Config({"BLOCK": block, "WAY": way}, **options) for block in blocks for way in ways]


def statuses(kernel, name):
    return {c[name]: m["status"].replace("not_converged", "ok") for c, m in zip(kernel.result.configurations, kernel.result.measurements)}


@pytest.mark.parametrize("begin", ["zeros", "right", "random"])
def test_a_wrong_kernel_is_never_chosen(begin):
    kernel = ergotune.triton.autotune(configs(), key=["n"], **QUICK)(scale)
    x = torch.rand(SIZE)
    out = {"zeros": torch.zeros(SIZE), "right": 2 * x, "random": torch.rand(SIZE)}[begin]
    kernel[grid](x, out, SIZE)
    assert statuses(kernel, "WAY") == {"right": "ok", "wrong": "wrong_result", "idle": "wrong_result"}
    assert kernel.best_config.kwargs["WAY"] == "right" and torch.equal(out, 2 * x)


def test_a_reference_shows_that_the_first_configuration_is_wrong():
    kernel = ergotune.triton.autotune(configs(("wrong", "right")), key=["n"], reference=lambda x: {"out": 2 * x}, **QUICK)(scale)
    kernel[grid](torch.rand(SIZE), torch.zeros(SIZE), SIZE)
    assert statuses(kernel, "WAY") == {"right": "ok", "wrong": "wrong_result"}


def test_each_key_is_tuned_once():
    kernel = ergotune.triton.autotune(configs(("right",)), key=["n"], **QUICK)(scale)
    seen = []
    for n, kind in ((SIZE, torch.float32), (SIZE, torch.float32), (SIZE - 1, torch.float32), (SIZE, torch.float64), (SIZE, torch.float32)):
        kernel[grid](torch.rand(SIZE).to(kind), torch.zeros(SIZE, dtype=kind), n)
        seen.append(kernel.result)
    assert seen[0] is seen[1] and len({id(result) for result in seen}) == 3 and seen[3] is seen[4]
    assert set(kernel.cache.values()) <= set(kernel.configs)


def test_a_space_is_searched_within_its_restrictions_and_budget():
    kernel = ergotune.triton.autotune(
        space={"BLOCK": [128, 64, 256, 512], "WAY": ["right"], "num_warps": [4, 1, 2, 8], "num_stages": [1, 2]}, key=["n"],
        restrictions=["BLOCK >= 32 * num_warps", lambda num_stages: num_stages < 2], budget=5, **QUICK)(scale)
    x, out = torch.rand(SIZE), torch.zeros(SIZE)
    kernel[grid](x, out, SIZE)
    assert torch.equal(out, 2 * x) and kernel.result.evaluated == 5
    assert all(c["BLOCK"] >= 32 * c["num_warps"] and c["num_stages"] == 1 for c in kernel.result.configurations)
    assert kernel.best_config.num_stages == 1 and set(kernel.best_config.kwargs) == {"BLOCK", "WAY"}


@pytest.mark.parametrize("settings, flushed", [({}, True), ({"use_cuda_graph": True}, False), ({"cold_cache": False}, False),
                                               ({"objective": "time * time"}, False)])
def test_the_cache_is_flushed_where_tritons_own_measure_does_it(settings, flushed):
    kernel = ergotune.triton.autotune(configs(("right",)), key=["n"], **settings, **QUICK)(scale)
    kernel[grid](torch.rand(SIZE), torch.zeros(SIZE), SIZE)
    assert ("cold cache" in kernel.result.best_measurement["quantities"]["time"]["method"]) == flushed


def test_hooks_and_pruning_are_tritons():
    called = []
    listed = [triton.Config({"BLOCK": block, "HALF": half}, pre_hook=lambda full: called.append(full["BLOCK"]))
              for block in (64, 128, 256, 512) for half in (False, True)]
    kernel = ergotune.triton.autotune(
        listed, key=["n"], reset_to_zero=["out"], prune_configs_by={"early_config_prune": lambda all, named, **more: all[:4]},
        **QUICK)(accumulate)
    x, out = torch.ones(SIZE), torch.full((1,), 5.0)
    kernel[grid](x, out, SIZE)
    assert set(called) == {64, 128} and statuses(kernel, "HALF") == {False: "ok", True: "wrong_result"}
    assert out.item() == 5 + SIZE  # the launch itself; not what was tried before


def test_heuristics_may_stand_below():
    kernel = ergotune.triton.autotune([triton.Config({"BLOCK": block}) for block in (64, 512)], key=["n"], reset_to_zero=["out"], **QUICK)(
        triton.heuristics({"HALF": lambda given: given["BLOCK"] == 64})(accumulate))
    out = torch.zeros(1)
    kernel[grid](torch.ones(SIZE), out, SIZE)
    assert statuses(kernel, "BLOCK") == {64: "ok", 512: "wrong_result"} and out.item() == SIZE // 2


class Grid:
    """As a lambda, but it goes to another process."""

    def __call__(self, meta):
        return grid(meta)


def test_a_worker_process_bears_crashes_and_hangs():
    x, out = torch.rand(SIZE), torch.zeros(SIZE)
    harmful[Grid()](x, out, n=SIZE)
    assert statuses(harmful, "WAY") == {"right": "ok", "wrong": "runtime_error", "idle": "timeout"} and torch.equal(out, 2 * x)
    elsewhere = ergotune.triton.autotune(configs(), key=["n"], in_process=False, **QUICK)(scale)
    with pytest.raises(ergotune.UserError, match="where it is defined"):
        elsewhere[Grid()](x, out, SIZE)


SCRIPT = """
import json, os, sys
os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, {folder!r})
import test_triton as t
kernel = t.ergotune.triton.autotune(t.configs(("right", "wrong")), key=["n"], objective={objective!r}, **t.QUICK)(t.scale)
x, out = t.torch.rand(t.SIZE), t.torch.zeros(t.SIZE)
kernel[t.grid](x, out, t.SIZE)
print(json.dumps([kernel.result is not None, kernel.best_config.kwargs, t.torch.equal(out, 2 * x)]))
"""


def test_the_next_process_starts_without_tuning():
    def run(objective="time"):
        script = SCRIPT.format(folder=os.path.dirname(__file__), objective=objective)
        return json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)

    first, second, other = run(), run(), run("time * time")
    assert first[0] and other[0] and not second[0] and first[1:] == second[1:] and second[2]


def test_triton_searches_by_our_measure():
    pytest.importorskip("torch", reason="do_bench asks PyTorch for the device")
    kernel = triton.autotune(configs(("right",)), key=["n"], do_bench=ergotune.triton.do_bench("time", max_seconds=0.02))(scale)
    x, out = torch.rand(SIZE), torch.zeros(SIZE)
    kernel[grid](x, out, SIZE)
    assert all(low <= value <= high and value > 0 for value, low, high in kernel.configs_timings.values())
    assert torch.equal(out, 2 * x)


def test_mistakes_name_what_to_mend():
    decorate = ergotune.triton.autotune
    for wrong in (dict(do_bench=print), dict(device="host"), dict(space={"BLOCK": [1]})):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            decorate(configs(), key=["n"], **wrong)
    with pytest.raises(TypeError, match="configs"):
        decorate(key=["n"])
    with pytest.raises(ValueError, match="size"):
        decorate(configs(), key=["size"])(scale)
    with pytest.warns(UserWarning, match="warmup"):
        decorate(configs(), key=["n"], warmup=3)
    with pytest.raises(ValueError, match="BLOCK"):
        decorate(configs(), key=["n"], **QUICK)(scale)[(1,)](torch.rand(SIZE), torch.zeros(SIZE), SIZE, BLOCK=64)
    with pytest.raises(ergotune.Error, match="works|fails"):
        decorate([triton.Config({"BLOCK": block, "WAY": "right"}) for block in (3, 5)], key=["n"], **QUICK)(scale)[grid](
            torch.rand(SIZE), torch.zeros(SIZE), SIZE)
