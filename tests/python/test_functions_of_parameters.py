"""Functions of parameters: restrictions, values and metrics, by name or of a dict."""

import functools
import json
import os
import subprocess

import numpy as np
import pytest

import ergotune

QUICK = dict(device="host", strategy="brute_force", confirm=False, max_seconds=0.01, min_repeats=3, precision=0.5, quiet=True,
             in_process=True)


def constant(c):
    return 1.0


def of_two(c, d):
    return 1.0


def verbose(c, *, verbose=False):
    return c != 16


class Above:
    def __call__(self, c, least=32):
        return c >= least


def configurations(**more):
    return [c["c"] for c in ergotune.tune_callable(constant, {"c": [16, 32, 64]}, **more, **QUICK).configurations]


@pytest.mark.parametrize("restriction", [lambda c, bad=(16,): c not in bad, verbose, lambda **p: p["c"] != 16, lambda p: p["c"] != 16,
                                         Above(), functools.partial(lambda c, other: c != other, other=16), lambda *p: p[0]["c"] != 16])
def test_restrictions_keep_defaults_and_take_parameters_by_name(restriction):
    assert sorted(configurations(restrictions=restriction)) == [32, 64]
    problem = ergotune.Problem("three")
    problem.add_parameter("c", [16, 32, 64])
    problem.restrict(restriction)
    assert [c["c"] for c in ergotune.SearchSpace(problem)] == [32, 64]


def test_a_loop_may_bind_its_variable():
    assert configurations(restrictions=[lambda c, limit=limit: c != limit for limit in (16, 32)]) == [64]


@pytest.mark.parametrize("restriction", [lambda: True, lambda c, other: True, lambda p, q: True, True, [True]])
def test_a_restriction_that_cannot_be_called_is_refused(restriction):
    with pytest.raises(TypeError, match="restriction"):
        configurations(restrictions=restriction)


@pytest.mark.parametrize("values", [lambda c: [1, c], lambda p: [1, p["c"]], lambda c, times=1: (1, times * c), lambda c: np.array([1, c])])
def test_values_are_functions_of_parameters_by_name(values):
    result = ergotune.tune_callable(of_two, {"c": [4, 8], "d": values}, **QUICK)
    assert sorted((c["c"], c["d"]) for c in result.configurations) == [(4, 1), (4, 4), (8, 1), (8, 8)]


def typed(c, dtype):
    assert isinstance(dtype, type)
    return 1.0


@pytest.mark.parametrize("verify", [None, lambda: 1.0])
def test_a_function_may_return_objects_as_values(verify):
    result = ergotune.tune_callable(typed, {"c": [4, 8], "dtype": lambda c: [np.float32] if c == 4 else [np.float64]}, verify=verify,
                                    **{**QUICK, "in_process": False})
    assert {m["status"] for m in result.measurements} <= {"ok", "not_converged"}
    assert result.best["dtype"] is (np.float32 if result.best["c"] == 4 else np.float64)


@pytest.mark.parametrize("values", [lambda c: c, lambda c: 1 / 0, lambda c, missing: [1]])
def test_values_that_cannot_be_had_name_their_parameter(values):
    with pytest.raises((TypeError, ValueError), match="parameter d"):
        ergotune.tune_callable(of_two, {"c": [4, 8], "d": values}, **QUICK)


@pytest.mark.parametrize("metric", [lambda row: 1 / (row["c"] - 2), lambda c: 1 / (c - 2), lambda c, n=1: None if c == 2 else n / (c - 2)])
def test_a_metric_that_fails_has_no_value_and_is_noted(metric):
    result = ergotune.tune_callable(constant, {"c": [1, 2, 3]}, metrics={"share": metric}, objective="max share", **QUICK)
    assert [m["metrics"].get("share") for m in result.measurements] == [-1, None, 1] and result.best == {"c": 3}
    assert any("share" in note for note in result.notes)


def test_a_metric_that_always_fails_leaves_a_result():
    result = ergotune.tune_callable(constant, {"c": [1, 2, 3]}, metrics={"share": lambda row: None}, objective="min share", **QUICK)
    assert result.best is None and len(result) == 3 and any("share" in note for note in result.notes)


def work(c, d):
    return sum(range(c * d)) * 0.0


def test_predictions_keep_to_restrictions_and_values_that_are_functions(tmp_path):
    store = tmp_path / "results.db"
    space = {"c": [1, 2, 4, 8, 16, 32, 64], "d": lambda c: range(1, 5 if c > 4 else 3)}
    ergotune.tune_callable(work, space, restrictions=lambda c, d: c * d <= 100, store=store, **{**QUICK, "strategy": "random"}, budget=14)
    valid = {(c, d) for c in space["c"] for d in space["d"](c) if c * d <= 100}
    found = ergotune.predict(store, top=100)["predictions"]
    assert {(one["configuration"]["c"], one["configuration"]["d"]) for one in found} <= valid and len(found) == len(valid) - 14
    assert ergotune.predict(store, configurations=[{"c": 8, "d": 4}])["predictions"]
    with pytest.raises(ergotune.UserError):
        ergotune.predict(store, configurations=[{"c": 64, "d": 4}])
    printed = subprocess.run([os.environ["ERGOTUNE_COMMAND"], "predict", str(store), "--json"], capture_output=True, text=True, check=True)
    assert json.loads(printed.stdout) == ergotune.predict(store)


def test_nothing_is_predicted_of_a_space_that_functions_restrict_and_no_store_lists(tmp_path):
    store = tmp_path / "results.db"
    ergotune.tune_callable(work, {"c": list(range(1, 201)), "d": list(range(1, 201))}, restrictions=lambda c, d: c != d, store=store,
                           **{**QUICK, "strategy": "random"}, budget=11)
    with pytest.raises(ergotune.UserError, match="function"):
        ergotune.predict(store)
