"""A Python function that hangs is ended by the time limit, or by Ctrl-C, wherever it runs."""

import os
import signal
import threading
import time

import pytest

import ergotune

QUICK = dict(device="host", strategy="brute_force", confirm=False, max_seconds=0.01, min_repeats=3, precision=0.5, quiet=True)


def hang(*arguments, **configuration):
    if "TO_INTERRUPT" in os.environ:
        threading.Timer(0.5, os.kill, (int(os.environ["TO_INTERRUPT"]), signal.SIGINT)).start()
    time.sleep(1000)


def works(c):
    return 1.0


def hangs_later(c):
    if c > 1:
        hang()
    return 1.0


@pytest.mark.parametrize("what, given", [("verify", {"verify": hang}), ("setup", {"setup": hang}), ("'c': '1'", {})])
@pytest.mark.parametrize("limit", [{"time_limit": 1}, {"seconds": 1}])
def test_what_hangs_before_anything_is_measured_is_named(what, given, limit):
    began = time.monotonic()
    with pytest.raises(ergotune.UserError) as said:
        ergotune.tune_callable(works if given else hang, {"c": [1, 2]}, **given, **limit, in_process=False, **QUICK)
    assert what in str(said.value) and next(iter(limit)) in str(said.value)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("function, given", [(hang, {}), (works, {"setup": hang}), (hangs_later, {})])
@pytest.mark.parametrize("in_process", [False, True])
def test_control_c_ends_a_run_that_hangs(tmp_path, monkeypatch, function, given, in_process):
    monkeypatch.setenv("TO_INTERRUPT", str(os.getpid()))
    began = time.monotonic()
    if function is hangs_later:
        store = tmp_path / "results.db"
        result = ergotune.tune_callable(function, {"c": [1, 2, 3]}, in_process=in_process, store=store, **QUICK)
        assert result.interrupted and result.configurations == [{"c": 1}], "it is not kept that the interrupted one failed"
        assert len(ergotune.show(store)) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            ergotune.tune_callable(function, {"c": [1, 2]}, **given, in_process=in_process, **QUICK)
    assert time.monotonic() - began < 500
    time.sleep(0.1)  # no KeyboardInterrupt is left


def leaves(c, raised):
    if c == 2:
        raise raised
    return 1.0


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_a_function_that_leaves_a_worker_has_failed(error):
    result = ergotune.tune_callable(leaves, {"c": [1, 2], "raised": [error]}, in_process=False, **QUICK)
    failed = next(m for c, m in zip(result.configurations, result.measurements) if c["c"] == 2)
    assert failed["status"] == "runtime_error" and type(error).__name__ in failed["message"] and "test_callable_limits.py" in failed["message"]
    assert "_callables" not in failed["message"] and "\n" not in failed["message"]
