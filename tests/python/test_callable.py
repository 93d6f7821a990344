"""Python callables as kernels: measured, verified, contained and kept as kernels are."""

import ctypes
import functools
import os
import resource
import subprocess
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest

import ergotune

QUICK = dict(device="host", strategy="brute_force", confirm=False, max_seconds=0.02, min_repeats=3, quiet=True)
SIZE = 20_000


def inputs():
    return np.arange(SIZE, dtype=np.float64), np.zeros(SIZE)


def smooth(x, out, chunk, fault):
    if fault == "raise":
        raise ValueError("this configuration is not for me")
    if fault == "crash":
        os.abort()
    if fault == "hang":
        time.sleep(1000)
    if fault == "memory":
        raise MemoryError("no room")
    for start in range(0, len(x), chunk):
        np.sqrt(x[start : start + chunk], out=out[start : start + chunk])
    if fault == "wrong":
        out[17] = -1
    if fault == "unwritten":
        out[len(x) // 2 :] = 0


def smooth_reference(x, out):
    out[:] = np.sqrt(x)


def statuses(result, parameter):
    return {c[parameter]: m["status"] for c, m in zip(result.configurations, result.measurements)}


def test_faults_of_a_configuration_are_its_status():
    faults = ["none", "raise", "crash", "hang", "memory", "wrong", "unwritten"]
    result = ergotune.tune_callable(smooth, {"chunk": [SIZE], "fault": faults}, setup=inputs, verify=smooth_reference, time_limit=3, **QUICK)
    found = statuses(result, "fault")
    assert found["none"] in ("ok", "not_converged")
    assert found["raise"] == "runtime_error" and found["crash"] == "runtime_error" and found["hang"] == "timeout"
    assert found["memory"] == "launch_error"
    assert found["wrong"] == found["unwritten"] == "wrong_result"
    messages = {c["fault"]: m["message"] for c, m in zip(result.configurations, result.measurements)}
    assert "not for me" in messages["raise"] and "test_callable.py" in messages["raise"]
    assert "at 17" in messages["wrong"]
    assert "2 wrong_result" in str(result) and "outputs agree" in str(result)
    assert result.best == {"chunk": SIZE, "fault": "none"} and not result.notes
    time_of = result.best_measurement["quantities"]["time"]
    assert time_of["value"] > 0 and time_of["half_width"] > 0 and time_of["provenance"] == "measured"


def test_a_store_says_what_verified_and_that_only_python_reads_the_winner(tmp_path):
    store = tmp_path / "results.db"
    ergotune.tune_callable(smooth, {"chunk": [SIZE], "fault": ["none"]}, setup=inputs, verify=smooth_reference, store=store, **QUICK)
    assert "smooth_reference" in ergotune.show(store)["attributes"]["description"]
    for form in ("header", "wisdom"):
        assert any("Python" in note for note in ergotune.export_results(store, tmp_path / form, format=form)["warnings"])


def test_the_faster_one_wins_and_nothing_is_measured_twice(tmp_path):
    space = {"chunk": [16, 200, SIZE], "fault": ["none"]}
    store = tmp_path / "results.db"
    first = ergotune.tune_callable(smooth, space, setup=inputs, verify=smooth_reference, store=store, **QUICK)
    assert first.best["chunk"] == SIZE and first.evaluated == 3
    again = ergotune.tune_callable(smooth, space, setup=inputs, verify=smooth_reference, store=store, **QUICK)
    assert again.evaluated == 0 and again.resumed == 3 and again.best == first.best
    for changed in (dict(version="2"), dict(relative_tolerance=0.5)):
        assert ergotune.tune_callable(smooth, space, setup=inputs, verify=smooth_reference, store=store, **changed, **QUICK).evaluated == 3


def helper(x, scale=2):
    return x * scale


def uses_helper(x, way):
    return helper(x)


def test_what_a_callable_calls_belongs_to_its_identity(tmp_path, monkeypatch):
    store = tmp_path / "results.db"
    space = {"way": [1, 2]}
    ergotune.tune_callable(uses_helper, space, arguments=(np.ones(10),), store=store, in_process=True, **QUICK)
    assert ergotune.tune_callable(uses_helper, space, arguments=(np.ones(10),), store=store, in_process=True, **QUICK).evaluated == 0
    assert ergotune.tune_callable(uses_helper, space, arguments=(np.ones(11),), store=store, in_process=True, **QUICK).evaluated == 2
    monkeypatch.setitem(globals(), "helper", lambda x: x * 3)
    assert ergotune.tune_callable(uses_helper, space, arguments=(np.ones(10),), store=store, in_process=True, **QUICK).evaluated == 2


helpers = types.ModuleType("helpers")
helpers.__file__ = "helpers.py"


def calls_helpers_in_functions_of_its_own(x, way):
    return [1 for _ in (helpers.scaled(part) for part in (x,))]


def test_what_a_callable_calls_in_other_modules_and_from_its_own_functions_belongs_to_its_identity(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "helpers", helpers)

    def run(body):
        exec(body, vars(helpers))
        return ergotune.tune_callable(calls_helpers_in_functions_of_its_own, {"way": [1, 2]}, arguments=(np.ones(10),),
                                      store=tmp_path / "r.db", in_process=True, **QUICK).evaluated

    for scale in (2, 3):
        body = f"other = {scale}\ndef scaled(x): return x * {scale}"
        assert run(body) == 2
        assert run(body) == 0
    assert run("other = 4") == 0, "what it does not use"


class Compiled:
    """Has code as a function of Cython has, without being a function of Python."""
    __code__ = (lambda x: x).__code__

    def __call__(self, x):
        return x


def test_packages_in_a_folder_of_their_own_count_by_their_version(tmp_path, monkeypatch):
    folder = tmp_path / "packages"  # as pip install --target makes it
    (folder / "helpers-1.dist-info").mkdir(parents=True)
    (folder / "helpers.py").touch()
    monkeypatch.setitem(sys.modules, "helpers", helpers)
    monkeypatch.setattr(helpers, "__file__", str(folder / "helpers.py"))
    monkeypatch.setattr(helpers, "scaled", Compiled(), raising=False)

    def run():
        return ergotune.tune_callable(calls_helpers_in_functions_of_its_own, {"way": [1, 2]}, arguments=(np.ones(10),),
                                      store=tmp_path / "r.db", in_process=True, **QUICK).evaluated

    assert run() == 2
    monkeypatch.setattr(helpers, "scaled", lambda x: 2 * x)
    assert run() == 0


def test_a_callable_may_call_compiled_functions(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "helpers", helpers)
    monkeypatch.setattr(helpers, "scaled", Compiled(), raising=False)
    assert ergotune.tune_callable(calls_helpers_in_functions_of_its_own, {"way": [1, 2]}, arguments=(np.ones(10),),
                                  store=tmp_path / "r.db", in_process=True, **QUICK).evaluated == 2


def test_the_body_of_a_restriction_belongs_to_the_identity(tmp_path):
    store = tmp_path / "results.db"
    space = {"chunk": [16, 200, SIZE], "fault": ["none"]}
    given = dict(setup=inputs, verify=smooth_reference, store=store, **QUICK)
    at_least, at_most = lambda chunk: chunk >= 1, lambda chunk: chunk <= 512
    assert ergotune.tune_callable(smooth, space, restrictions=[at_least], **given).evaluated == 3
    assert ergotune.tune_callable(smooth, space, restrictions=[at_least], **given).evaluated == 0
    other = ergotune.tune_callable(smooth, space, restrictions=[at_most], **given)
    assert other.evaluated == 2 and "restrictions" in other.notes[0]
    assert ergotune.show(store).best["chunk"] < 512
    again = ergotune.tune_callable(smooth, space, restrictions=[lambda chunk: chunk <= 512], **given, seed=3)
    assert again.evaluated == 0, "what surrounds a lambda does not matter"
    for least in (1, 100):
        generated = {"chunk": [16, 200, SIZE], "fault": lambda chunk, least=least: ["none"] if chunk >= least else ["none", "raise"]}
        assert ergotune.tune_callable(smooth, generated, **given).evaluated == (3 if least == 1 else 4)


def test_the_note_of_a_new_session_names_what_has_changed(tmp_path):
    def notes(**other):
        given = {"arguments": {"values": np.ones(100)}, "verify": False, "store": tmp_path / "results.db", **QUICK, **other}
        return ergotune.tune_callable(accumulate, {"step": [1, 2]}, **given).notes

    assert not notes()
    assert "argument values" in notes(arguments={"values": np.ones(101)})[0]
    assert "tolerance" in notes(relative_tolerance=0.5)[0]
    assert "version" in notes(version="2")[0]
    assert not any("kernel.function" in note for note in notes(version="3"))


def test_other_contents_of_arguments_are_noted(tmp_path):
    def run(value):
        return ergotune.tune_callable(accumulate, {"step": [1, 2]}, arguments=(np.full(100, value),), store=tmp_path / "results.db", **QUICK)

    run(1.0)
    assert not run(1.0).notes
    for _ in range(2):
        other = run(2.0)
        assert other.evaluated == 0 and "other contents" in other.notes[0]
    assert not run(1.0).notes


def test_a_default_that_a_restriction_excludes_is_noted():
    result = ergotune.tune_callable(accumulate, {"step": [1, 2, 3]}, arguments=(np.ones(100),), verify=False,
                                    restrictions=[lambda step: step > 1], **QUICK)
    assert result.default_measurement is None and any("excludes" in note for note in result.notes)
    assert any("test_callable.py, line" in note for note in result.notes), "a lambda has no name, but a place"


def test_nothing_is_verified_where_nothing_worked():
    result = ergotune.tune_callable(smooth, {"chunk": [SIZE], "fault": ["raise"]}, setup=inputs, verify=smooth_reference, **QUICK)
    assert result.best is None and not result.verified


def accumulate(values, step):
    values += step
    return values.sum()


def test_inputs_are_restored_for_each_configuration():
    values = np.ones(100)
    for in_process in (False, True):
        result = ergotune.tune_callable(accumulate, {"step": [1, 2, 3]}, arguments=(values,), verify=lambda values: values.sum() + 200,
                                        in_process=in_process, **QUICK)
        found = statuses(result, "step")
        assert found[2] in ("ok", "not_converged") and found[1] == found[3] == "wrong_result"
        named = ergotune.tune_callable(accumulate, {"step": [1, 2]}, arguments={"values": values},
                                       verify=lambda values: {"values": values + 1}, in_process=in_process, **QUICK)
        assert statuses(named, "step")[1] in ("ok", "not_converged") and statuses(named, "step")[2] == "wrong_result"


def settle(data, way):
    if data[0] != 1:  # the work is left to do
        time.sleep(0.02 if way == "quick" else 0.04)
        data[0] = 1
    elif way == "quick":
        time.sleep(0.01)


@pytest.mark.parametrize("in_process", [False, True])
def test_a_function_that_works_in_place_is_timed_on_its_inputs(in_process):
    result = ergotune.tune_callable(settle, {"way": ["quick", "slow"]}, arguments=(np.zeros(4),), in_process=in_process, **QUICK)
    times = {c["way"]: m["quantities"]["time"]["value"] for c, m in zip(result.configurations, result.measurements)}
    assert times["quick"] >= 0.02 and times["slow"] >= 0.04


def total(x, out, way):
    if way == "broken":
        raise ValueError("not on this machine")
    out[:] = x.sum() if way != "wrong" else 1
    if way == "idle":
        out[:] = 0


def test_without_a_reference_the_default_configuration_is_right():
    ways = ["broken", "sum", "wrong", "idle", "other"]
    expected = {"broken": "runtime_error", "sum": "ok", "wrong": "wrong_result", "idle": "wrong_result", "other": "ok"}

    def found(out, **more):
        result = ergotune.tune_callable(total, {"way": ways}, arguments={"x": np.ones(50), "out": out}, **more, **{**QUICK, "precision": 0.5})
        return {way: status.replace("not_converged", "ok") for way, status in statuses(result, "way").items()}

    assert found(np.zeros(1)) == expected  # the next one, as the first does not run
    assert found(np.full(1, 50.0), in_process=True) == expected  # right before anything has run
    assert found(np.zeros(1), default={"way": "wrong"})["sum"] == "wrong_result"
    assert found(np.zeros(1), verify=False)["wrong"] == "ok"
    assert found(np.zeros(1), verify=lambda x: {"out": [x.sum()]}) == expected
    with pytest.raises(ergotune.UserError, match="not on this machine"):
        ergotune.tune_callable(total, {"way": ["broken"]}, arguments={"x": np.ones(50), "out": np.zeros(1)}, **QUICK)


def test_arrays_of_the_caller_have_their_contents_afterwards():
    x, out = np.ones(50), np.full(1, 7.0)
    ergotune.tune_callable(total, {"way": ["sum", "wrong"]}, arguments=(x, out), in_process=True, **QUICK)
    assert out[0] == 7


@pytest.mark.parametrize("dtype, near", [(np.float64, 1e-9), (np.float32, 1e-5), (np.float16, 2e-3), (np.int32, 0)])
def test_tolerances_follow_the_type(dtype, near):
    def shifted(x, by):
        return (x + dtype(by)).astype(dtype)

    result = ergotune.tune_callable(shifted, {"by": [0, near, 1]}, arguments=(np.arange(100).astype(dtype),), in_process=True, **QUICK) \
        if near else ergotune.tune_callable(shifted, {"by": [0, 1]}, arguments=(np.arange(100).astype(dtype),), in_process=True, **QUICK)
    wrong = {by for by, status in statuses(result, "by").items() if status == "wrong_result"}
    assert wrong == {1}


class CompileError(Exception):
    """As frameworks name theirs."""


def make(x, unroll, fast):
    if unroll == 3:
        raise CompileError("cannot unroll by 3")

    def launch():
        return np.sqrt(x)[:: 1 if fast else 1]

    launch.resources = {"registers": 16 * unroll, "shared_bytes": 1024, "spilled_registers": 0}
    return launch


def test_a_function_that_returns_a_launch_is_compiled_once():
    result = ergotune.tune_callable(make, {"unroll": [1, 2, 3, 4], "fast": [True, False]}, setup=lambda: (np.ones(1000),),
                                    verify=np.sqrt, restrictions=["registers <= 48", lambda unroll, fast: fast or unroll < 4], **QUICK)
    found = {(c["unroll"], c["fast"]): m for c, m in zip(result.configurations, result.measurements)}
    assert set(found) == {(1, True), (1, False), (2, True), (2, False), (3, True), (3, False), (4, True)}
    assert found[3, True]["status"] == "compile_error" and "unroll by 3" in found[3, True]["message"]
    assert found[4, True]["status"] == "unsupported" and found[1, True]["quantities"]["registers"]["value"] == 16
    assert result.best["unroll"] in (1, 2)


def cast(x, dtype, order):
    return np.asarray(x, dtype=dtype, order=order).sum()


def test_values_may_be_any_objects():
    result = ergotune.tune_callable(cast, {"dtype": [np.float32, np.float64, None], "order": ["C", None]}, arguments=(np.ones(50),),
                                    verify=lambda x: 50.0, **QUICK)
    assert set(statuses(result, "dtype")) == {"float32", "float64", "None"}
    assert set(statuses(result, "dtype").values()) <= {"ok", "not_converged"}


def test_functions_of_parameters_are_given_objects(tmp_path):
    result = ergotune.tune_callable(cast, {"dtype": [np.float32, np.float64], "order": ["C", None]}, arguments=(np.ones(50),), verify=False,
                                    restrictions=[lambda dtype: dtype is np.float64, lambda row: row["order"] is None],
                                    metrics={"bytes": lambda row: row["dtype"](0).itemsize}, store=tmp_path / "r.db", **QUICK)
    assert len(result) == 1 and result.best == {"dtype": np.float64, "order": None}
    assert result.best_measurement["metrics"]["bytes"] == 8


def test_objects_of_a_prediction_are_those_of_the_space(tmp_path):
    space = {"dtype": [np.float32, np.float64], "n": np.arange(1, 7)}
    ergotune.tune_callable(lambda x, dtype, n: x[:n].astype(dtype).sum(), space, arguments=(np.ones(50),), verify=False, store=tmp_path / "r.db", **QUICK)
    predicted = ergotune.predict(tmp_path / "r.db", configurations=[{"dtype": np.float64, "n": np.int64(2)}])["predictions"]
    assert predicted[0]["configuration"] == {"dtype": "float64", "n": 2}


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


def test_objects_have_the_same_names_in_every_process(tmp_path):
    def applied(x, how):
        return how(x)

    def tuned():
        space = {"how": [Scale(2), Scale(3), functools.partial(np.multiply, 2)]}
        return ergotune.tune_callable(applied, space, arguments=(np.ones(50),), verify=False, store=tmp_path / "r.db", **QUICK)

    result = tuned()
    assert {"Scale(factor=2)", "Scale(factor=3)"} < set(statuses(result, "how")) and not any("0x" in name for name in statuses(result, "how"))
    assert result.evaluated == 3 and tuned().evaluated == 0


def test_another_function_as_a_value_begins_a_new_session(tmp_path):
    def evaluated(factor):
        def scaled(x):
            return factor * x

        return ergotune.tune_callable(lambda x, how: how(x), {"how": [scaled]}, arguments=(np.ones(50),), verify=False, store=tmp_path / "r.db",
                                      **QUICK).evaluated

    assert evaluated(1) == 1 and evaluated(1) == 0 and evaluated(2) == 1


def test_parameters_may_depend_on_earlier_ones():
    result = ergotune.tune_callable(cast_tile, {"tile": [4, 8], "part": lambda earlier: range(1, earlier["tile"], 3)},
                                    arguments=(np.ones(50),), verify=False, metrics={"rate": "50 / time", "double": lambda row: 2 * row["rate"]},
                                    objective="max rate", **QUICK)
    assert {(c["tile"], c["part"]) for c in result.configurations} == {(4, 1), (8, 1), (8, 4), (8, 7)}
    metrics = result.best_measurement["metrics"]
    assert metrics["double"] == pytest.approx(2 * metrics["rate"])


def cast_tile(x, tile, part):
    assert isinstance(part, int)
    return x[part:tile].sum()


def test_what_cannot_go_to_another_process_runs_here_and_says_so():
    lock = threading.Lock()
    seen = []

    def locked(x, n):
        with lock:
            seen.append(n)
            return x * n

    result = ergotune.tune_callable(locked, {"n": [1, 2]}, arguments=(np.ones(5),), verify=False, **QUICK)
    assert set(seen) == {1, 2} and any("this process" in note for note in result.notes)
    with pytest.raises(ergotune.UserError, match="this process"):
        ergotune.tune_callable(locked, {"n": [1, 2]}, arguments=(np.ones(5),), in_process=False, **QUICK)


def test_compile_runs_in_processes_beside_measuring(tmp_path):
    def compile(n):
        if n == 3:
            raise SyntaxError("no threes")
        (tmp_path / f"compiled-{n}-{os.getpid()}").touch()

    def run(n):
        made = [file.name for file in tmp_path.glob(f"compiled-{n}-*")]
        assert made and not made[0].endswith(f"-{os.getpid()}")

    result = ergotune.tune_callable(run, {"n": [1, 2, 3]}, compile=compile, jobs=2, cache=False, in_process=False, verify=False, **QUICK)
    found = statuses(result, "n")
    assert found[3] == "compile_error" and {found[1], found[2]} <= {"ok", "not_converged"}


def picky(values, step):
    if step == 1:
        raise ValueError("no step of 1")
    return values + step * 0


def test_a_default_that_failed_is_named():
    result = ergotune.tune_callable(picky, {"step": [1, 2, 3]}, arguments=(np.ones(3),), verify=np.copy, **QUICK)
    assert result.best["step"] != 1
    assert "default configuration failed: ValueError: no step of 1" in str(result)


def log_faults(path, blocks, mebibytes):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [np.ones(mebibytes << 17) for _ in range(blocks)]
    time.sleep(0.03)  # on a busy machine, too, the worker has time to see them
    del kept
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    with open(path, "a") as log:
        log.write(f"{blocks} {faults}\n")


def test_temporaries_take_what_they_take_in_a_program_of_their_own(tmp_path):
    """There glibc keeps twice the largest block that was freed, here 2 MiB of 8, whatever other configurations have freed."""
    log = tmp_path / "faults"
    ergotune.tune_callable(log_faults, {"blocks": [1, 8], "mebibytes": [16, 1]}, arguments={"path": str(log)}, in_process=False, verify=False,
                           restrictions=["blocks * mebibytes <= 16"], **{**QUICK, "max_seconds": 0.2})
    last = {int(blocks): int(faults) for blocks, faults in (line.split() for line in log.read_text().splitlines())}
    pages = (1 << 20) // resource.getpagesize()
    assert last[1] < pages / 2 and last[8] > 4 * pages


def frees(path):
    np.ones(4 << 17)
    return {"path": path}


def test_what_setup_has_freed_counts_for_temporaries(tmp_path):
    """glibc keeps twice that, 8 MiB, which is more than three blocks of 2 MiB."""
    log = tmp_path / "faults"
    ergotune.tune_callable(log_faults, {"blocks": [3], "mebibytes": [2]}, setup=functools.partial(frees, str(log)), in_process=False,
                           verify=False, **{**QUICK, "max_seconds": 0.2})
    assert int(log.read_text().split()[-1]) < (2 << 20) / resource.getpagesize()


def undefined(x, out, way):
    out[:] = np.sqrt(-x) if way != "numbers" else 1


def test_nothing_but_nan_verifies_nothing():
    arguments = (np.ones(100), np.zeros(100))
    for verify in (None, lambda x, out: undefined(x, out, "as it is")):
        with pytest.raises(ergotune.UserError, match="NaN"):
            ergotune.tune_callable(undefined, {"way": ["fast", "slow"]}, arguments=arguments, verify=verify, **QUICK)
    assert ergotune.tune_callable(undefined, {"way": ["fast", "slow"]}, arguments=arguments, verify=False, **QUICK).best


def test_mistakes_name_what_to_mend():
    with pytest.raises(ergotune.UserError, match="no such file"):
        ergotune.tune_callable(cast, {"dtype": [None]}, setup=broken_setup, **QUICK)
    with pytest.raises(TypeError, match="space"):
        ergotune.tune_callable(cast, [1, 2], **QUICK)
    with pytest.raises(TypeError, match="strategy"):
        ergotune.tune_callable(cast, {"dtype": [None]}, stratgy="random", **QUICK)
    with pytest.raises(TypeError, match="dtyp"):
        ergotune.tune_callable(cast, {"dtype": [None]}, arguments=(1,), default={"dtyp": None}, **QUICK)
    with pytest.raises(TypeError, match="typ.*dtype"):
        ergotune.tune_callable(cast, {"typ": [None]}, arguments=(1,), **QUICK)
    with pytest.raises(TypeError, match="equal"):
        ergotune.tune_callable(accumulate, {"step": [1, 1]}, arguments=(np.ones(3),), **QUICK)
    with pytest.raises(TypeError, match="order"):
        ergotune.tune_callable(cast, {"dtype": [None]}, arguments=(1,), **QUICK)
    with pytest.raises(ergotune.UserError, match="part"):
        ergotune.tune_callable(cast_tile, {"tile": [1]}, setup=inputs_of_cast, **QUICK)
    with pytest.raises(TypeError, match="one of them"):
        ergotune.tune_callable(cast, {"dtype": [None]}, arguments=(1,), setup=inputs, **QUICK)
    with pytest.raises(ergotune.UserError, match="nothing can be compared"):
        ergotune.tune_callable(accumulate, {"step": [1]}, arguments=(np.ones(3),), verify=nothing, **QUICK)
    for verify in (np.ones(2), 3.0, 0):
        with pytest.raises(TypeError, match="verify"):
            ergotune.tune_callable(cast, {"dtype": [None]}, verify=verify, **QUICK)
    with pytest.raises(TypeError, match="dtype"):
        ergotune.tune_callable(cast, {"dtype": None}, **QUICK)
    with pytest.raises(ergotune.UserError, match="host"):
        ergotune.tune_callable(cast, {"dtype": [None]}, **{**QUICK, "device": "opencl"})
    with pytest.raises(ergotune.UserError, match="setup.*tuple"):
        ergotune.tune_callable(cast, {"dtype": [None]}, setup=five, **QUICK)


def five():
    return 5


def prepared(values, step):
    first = values.copy()  # what a function prepares from its arguments

    def launch():
        values[:] = first + 1

    return launch


def test_a_function_that_prepares_a_launch_sees_the_original_contents():
    result = ergotune.tune_callable(prepared, {"step": [1, 2, 3]}, arguments=(np.zeros(3),), **QUICK)
    assert [measurement["status"] for measurement in result.measurements].count("wrong_result") == 0


def test_a_single_value_is_a_list_of_one():
    result = ergotune.tune_callable(accumulate, {"step": 1}, arguments=(np.ones(3),), **QUICK)
    assert result.best == {"step": 1}


def broken_setup():
    raise OSError("no such file as data.npy")


def inputs_of_cast():
    return (np.ones(3),)


def nothing(values):
    pass


SCRIPT = """
    import numpy as np
    import ergotune

    def work(x, n):
        for part in np.array_split(x, n):
            np.sqrt(part)

    def begin():
        result = ergotune.tune_callable(work, {"n": [1, 2, 50]}, arguments=(np.ones(100),), device="host", strategy="brute_force",
                                        confirm=False, max_seconds=0.02, verify=False, quiet=True)
        print(len(result), result.notes, result.best["n"] < 50)
"""


def run_script(tmp_path, end):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT) + end)
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)


def test_a_script_gives_its_functions_to_workers(tmp_path):
    done = run_script(tmp_path, "if __name__ == '__main__':\n    begin()\n")
    assert done.stdout.split() == ["3", "[]", "True"], done.stderr
    other = "problem = ergotune.Problem('other')\nproblem.add_parameter('n', [1])\nergotune.tune(problem, device='sim:a100', quiet=True)\n"
    for unguarded in ("begin()\n", other + "if __name__ == '__main__':\n    begin()\n"):
        done = run_script(tmp_path, unguarded)
        assert done.returncode != 0 and "__main__" in done.stderr


@pytest.mark.parametrize("late, noted", [("", False), ("SIZE = 500\n    ", True)])
def test_a_global_that_workers_have_with_another_value_is_noted(tmp_path, late, noted):
    script = tmp_path / "script.py"
    script.write_text(f"""
import sys
import numpy as np
import ergotune

SIZE = int(sys.argv[1])

def work(n):
    return np.arange(SIZE).sum()

if __name__ == "__main__":
    {late}result = ergotune.tune_callable(work, {{"n": [1, 2]}}, device="host", confirm=False, max_seconds=0.02, quiet=True)
    print(bool(result.best_measurement["warnings"]))
""")
    done = subprocess.run([sys.executable, str(script), "400"], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [str(noted)], done.stderr


def test_interrupting_a_callable_of_this_process():
    def work(n):
        ctypes.pythonapi.PyErr_CheckSignals()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ergotune.tune_callable(work, {"n": [1, 2]}, in_process=True, **QUICK)


def root_of(x, kind, chunk):
    return np.concatenate([kind(x[start : start + chunk]) for start in range(0, len(x), chunk)])


class Solver:
    def __call__(self, x, **configuration):
        return root_of(x, **configuration)


def test_the_best_is_given_to_the_function_as_it_is():
    x = np.arange(100.0)
    result = ergotune.tune_callable(root_of, {"kind": [np.sqrt, np.cbrt], "chunk": [10, 100]}, arguments=(x,), verify=np.sqrt, **QUICK)
    assert result.best["kind"] is np.sqrt
    np.testing.assert_array_equal(root_of(x, **result.best), np.sqrt(x))
    assert "sqrt" in repr(result) and result.front[0]["configuration"]["kind"] == "sqrt"


def test_parameters_of_an_object_that_is_called_are_not_taken_for_unused():
    result = ergotune.tune_callable(Solver(), {"kind": [np.sqrt], "chunk": [10, 100]}, arguments=(np.arange(100.0),), **QUICK)
    assert not any("changes nothing" in note for note in result.notes)


def test_a_default_that_is_no_value_is_refused():
    with pytest.raises(ValueError, match="chunk.*7"):
        ergotune.tune_callable(root_of, {"kind": [np.sqrt], "chunk": [10, 100]}, arguments=(np.arange(100.0),), default={"chunk": 7}, **QUICK)
