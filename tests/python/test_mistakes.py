"""Mistakes in a program: refused before anything is measured, in words that say what to mend."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import ergotune
import ergotune.kernel_tuner as kt

SOURCE = "void work(float* y) { for (int i = 0; i < 64; ++i) y[i] = TURN > 0; }"


def problem(**parameters):
    made = ergotune.Problem("work")
    made.set_source("c", SOURCE, "work")
    made.add_buffer("y", np.zeros(64, np.float32), "write")
    for name, values in (parameters or {"TURN": [1, 2, 3]}).items():
        made.add_parameter(name, values)
    return made


def tune(made=None, **more):
    return ergotune.tune(problem() if made is None else made, **{"device": "host", "confirm": False, "precision": 0.5, **more})


def refused(call, kind=ergotune.UserError):
    """What is said of a mistake; never the words of the library that binds C++ to Python."""
    with pytest.raises(kind) as said:
        call()
    assert "pybind" not in str(said.value).lower() and "C++" not in str(said.value)
    return str(said.value)


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_of_time_is_more_than_0(seconds):
    assert "seconds" in refused(lambda: tune(seconds=seconds))
    with pytest.raises(RuntimeError, match="time limit"):
        kt.tune_kernel("work", SOURCE, 1, [np.zeros(64, np.float32)], {"TURN": [1]}, lang="C", quiet=True,
                       strategy_options={"time_limit": seconds})


@pytest.mark.parametrize("option", ["time_limit", "max_fevals", "fraction"])
def test_a_limit_of_a_search_is_a_number(option):
    given = {option: "3"}
    call = lambda: kt.tune_kernel("work", SOURCE, 1, [np.zeros(64, np.float32)], {"TURN": [1]}, lang="C", quiet=True,
                                  strategy="random_sample", strategy_options=given)
    assert f"{option} is a number, not '3'" in refused(call, TypeError)


@pytest.mark.parametrize("setting, value", [("seconds", "x"), ("budget", object()), ("strategy", object()), ("precision", {1, 2}),
                                            ("resume", "no"), ("strategy_options", [object()])])
def test_a_setting_of_another_kind_is_named(setting, value):
    assert setting in refused(lambda: tune(**{setting: value}), (TypeError, ergotune.UserError))


@pytest.mark.parametrize("given", [{"verify": "yes"}, {"progress": 3}, {"metrics": ["x"]}, {"devices": [3]}, {"devices": 3}],
                         ids=str)
def test_a_callable_is_one(given):
    assert next(iter(given)) in refused(lambda: tune(**given), TypeError)


def test_observers_have_hooks():
    class Half:
        def get_results(self):
            return {}

    for observer in (3, Half()):
        assert "observer" in refused(lambda: tune(observers=[observer]), TypeError)
    with pytest.raises(TypeError, match="observer"):
        kt.tune_kernel("work", SOURCE, 1, [np.zeros(64, np.float32)], {"TURN": [1]}, lang="C", quiet=True, observers=[3])


# -- problems ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values, kind", [([2**70], ergotune.UserError), ([-(2**63) - 1], ergotune.UserError), ("abc", TypeError),
                                          (b"abc", TypeError), ([None], TypeError), ([[1]], TypeError), (5, TypeError)])
def test_values_that_are_none(values, kind):
    refused(lambda: problem(TURN=values), kind)


@pytest.mark.parametrize("parameters", [{"TURN": []}, {"TURN": [1, 1]}, {"TURN": [1.0, float("nan")]}, {"a b": [1], "TURN": [1]},
                                        {"": [1], "TURN": [1]}, {"2x": [1], "TURN": [1]}], ids=str)
def test_parameters_that_cannot_be(parameters):
    refused(lambda: tune(problem(**parameters)))


def test_what_a_problem_is_told_of_another_kind():
    refused(lambda: problem().restrict(5), TypeError)
    refused(lambda: problem().add_local_memory("l", 4, "flaot"))
    refused(lambda: problem().add_scalar("n", 2**70, "int32"))
    for bound in (float("nan"), -1):
        refused(lambda: ergotune.Session(problem(), device="host", bound=bound))


def test_what_is_declared_twice():
    twice = problem()
    twice.add_parameter("TURN", [4])
    assert "TURN" in refused(lambda: tune(twice))
    buffers = problem()
    buffers.add_buffer("y", np.zeros(4, np.float32))
    assert '"y"' in refused(lambda: tune(buffers))


def test_a_name_that_nothing_has_is_refused_before_anything_runs():
    made = problem()
    made.restrict("TRUN > 1")
    assert "TURN" in refused(lambda: tune(made))


def test_a_parameter_with_a_columns_name_has_one_of_its_own():
    table = tune(problem(TURN=[1], status=[5])).to_numpy()
    assert set(table["status"]) == {5} and set(table["status_"]) <= {"ok", "not_converged"}


def test_a_parameter_has_no_quantitys_name():
    assert '"time"' in refused(lambda: tune(problem(TURN=[1], time=[3, 4])))


@pytest.mark.parametrize("device, language, source, function", [
    ("opencl", "opencl", "float twice(float x) { return 2 * x; }\nkernel void work(global float* y) { y[0] = twice(TURN); }", "twice"),
    ("host", "c", SOURCE, "wrok")])
def test_a_function_that_is_not_a_kernel_ends_the_session_with_the_kernels(device, language, source, function):
    made = ergotune.Problem("work")
    made.set_source(language, source, function)
    made.add_buffer("y", np.zeros(64, np.float32), "write")
    made.add_parameter("TURN", [1, 2, 3])
    made.set_launch(global_size=[64], block=[1])
    assert "has work" in refused(lambda: tune(made, device=device))


def test_restrictions_may_name_parameters():
    made = problem(TURN=[1, 2, 3], other=[1, 2])
    made.restrict(lambda TURN, other: TURN == other)
    made.restrict(lambda p: p["TURN"] > 1)
    assert list(ergotune.SearchSpace(made)) == [{"TURN": 2, "other": 2}]
    made.restrict(lambda tern: tern > 1)
    message = refused(lambda: ergotune.SearchSpace(made), ValueError)
    assert "test_mistakes.py" in message and "TURN, other" in message and "\n" not in message, "its line, and not the stack"
    misspelt = problem(block_x=[1, 2])
    misspelt.restrict(lambda blok_x: blok_x > 1)
    message = refused(lambda: ergotune.SearchSpace(misspelt), ValueError)
    assert "blok_x" in message and '"block_x"' in message


def test_spaces_are_sequences():
    space = ergotune.SearchSpace(problem(TURN=[1, 2, 3], other=[1, 2]))
    assert space[1:3] == [space[1], space[2]] and space[::-1] == list(space)[::-1] and space[10:] == []
    assert "x.toml" in refused(lambda: ergotune.SearchSpace("x.toml"), ergotune.UserError)
    assert {"TURN": 1} not in space and {"TURN": 1, "other": 2} in space and (1, 2) in space


# -- execution parameters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values, count", [("all", None), (3, 3), ([900, 1200], 2), ({"from": 900, "to": 1200}, None),
                                           ({"from": 900, "to": 1200, "step": 150}, 3), ("model", None)], ids=str)
def test_clocks_are_set_from_python_as_from_a_file(values, count):
    made = problem(TURN=[1])
    made.add_execution_parameter("core_clock_mhz", values)
    result = tune(made, device="sim:a100", objective="energy", budget=200, early_stop=False)
    clocks = {c["core_clock_mhz"] for c in result.configurations}
    assert len(clocks) == count if count else len(clocks) > 2
    if isinstance(values, dict):
        assert min(clocks) >= 900 and max(clocks) <= 1200


@pytest.mark.parametrize("name, values", [("core_clock", 3), ("core_clock_mhz", 0), ("core_clock_mhz", "any"), ("power_limit_w", []),
                                          ("power_limit_w", ["x"]), ("power_limit_w", {"from": 3}),
                                          ("power_limit_w", {"from": 3, "to": 1}), ("power_limit_w", {"from": 3, "till": 1})])
def test_execution_parameters_that_cannot_be(name, values):
    refused(lambda: problem().add_execution_parameter(name, values))


def test_execution_parameters_are_declared_once():
    made = problem()
    made.add_execution_parameter("power_limit_w", 3)
    refused(lambda: made.add_execution_parameter("power_limit_w", "all"))


# -- strategies --------------------------------------------------------------------------------------------------------


class Asks:
    """Asks for whatever it was given, again and again."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def ask(self, count):
        self.asked += 1
        return [self.answer]

    def tell(self, index, values, ok):
        pass


def test_a_strategy_has_a_name_of_its_own():
    ergotune.register_strategy("of_its_own", lambda space, seed, options: Asks(0))
    for name in ("genetic", "of_its_own"):
        assert name in refused(lambda: ergotune.register_strategy(name, lambda space, seed, options: Asks(0)))
    made = []
    ergotune.register_strategy("of_its_own", lambda space, seed, options: made.append(1) or Asks(0), replace=True)
    tune(strategy="of_its_own", budget=2)
    assert made


@pytest.mark.parametrize("answer", ["x", 1.5, None, 2**80])
def test_what_a_strategy_asks_for_are_indices(answer):
    ergotune.register_strategy("asks", lambda space, seed, options: Asks(answer), replace=True)
    assert "asks" in refused(lambda: tune(strategy="asks"))


def test_a_strategy_that_asks_for_what_is_known_ends():
    strategies = []
    ergotune.register_strategy("stuck", lambda space, seed, options: strategies.append(Asks(1)) or strategies[-1], replace=True)
    result = tune(strategy="stuck", budget=3)
    assert len(result) == 2 and strategies[0].asked < 10_000


@pytest.mark.parametrize("values", ["x", ["x"], [None], object()])
def test_what_a_strategy_is_told_are_numbers(values):
    space = ergotune.SearchSpace(problem())
    refused(lambda: ergotune.Strategy("random", space).tell(1, values), TypeError)
    refused(lambda: ergotune.Strategy("random", space).run(lambda index, configuration: values, 3), TypeError)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_one_configuration_is_measured(tmp_path):
    one = ergotune.measure(problem(), {"TURN": 2}, device="host", precision=0.5, store=str(tmp_path / "s.db"))
    assert one["status"] in ("ok", "not_converged") and one["quantities"]["time"]["value"] > 0
    again = ergotune.measure(problem(), {"TURN": 2}, device="host", precision=0.5, store=str(tmp_path / "s.db"))
    assert again["quantities"]["time"] == one["quantities"]["time"]
    for value in (7, "2"):
        said = refused(lambda given=value: ergotune.measure(problem(), {"TURN": given}, device="host"))
        assert f"TURN has no value {value!r}" in said and "1, 2, 3" in said
    refused(lambda: ergotune.measure(problem(), {"NOPE": 7}, device="host"))


def test_one_configuration_is_verified_as_in_tuning(tmp_path):
    given = dict(device="host", precision=0.5, store=str(tmp_path / "s.db"))
    made = problem()

    def verify(actual, expected):
        return True

    result = ergotune.tune(made, verify=verify, confirm=False, strategy="brute_force", quiet=True, **given)
    known = ergotune.measure(made, {"TURN": 2}, verify=verify, **given)
    assert known["quantities"]["time"] == result.measurements[result.configurations.index({"TURN": 2})]["quantities"]["time"]
    assert ergotune.measure(made, {"TURN": 2}, verify=lambda actual, expected: False, **given)["status"] == "wrong_result"
    assert ergotune.measure(made, {"TURN": 2}, verify=False, device="host", precision=0.5)["status"] in ("ok", "not_converged")
    refused(lambda: ergotune.measure(made, {"TURN": 2}, verify=1, device="host"), TypeError)


def test_a_store_that_is_not_there_is_not_watched(tmp_path):
    refused(lambda: ergotune.watch(tmp_path / "nothere.db"))
    with ergotune.watch(tmp_path / "later.db", wait=True) as page:
        assert page.table()["state"] == "no session yet"


WITHOUT = """
import numpy as np, ergotune
made = ergotune.Problem("work")
made.set_source("c", "void work(float* y) { y[0] = TURN; }", "work")
made.add_buffer("y", np.zeros(1, np.float32), "write")
made.add_parameter("TURN", [1])
for call in (lambda: ergotune.tune(made, device="host"), lambda: ergotune.tune(made, device="host", in_process=True),
             lambda: ergotune.measure(made, device="host"), lambda: ergotune.Session(made, device="host"),
             lambda: ergotune.watch("."), lambda: ergotune.temperature(made)):
    try:
        call()
    except ergotune.UserError as said:
        assert "ERGOTUNE_COMMAND" in str(said), said
    else:
        raise AssertionError("it ran")
print(len(ergotune.tune(made, device="sim:a100", confirm=False)))
"""


def test_without_the_command_it_is_said(tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "ERGOTUNE_COMMAND": str(tmp_path / "nothing")})
    assert done.returncode == 0 and done.stdout == "1\n", done.stderr


HOLD = """
import sys, time, numpy as np, ergotune
made = ergotune.Problem("work")
made.set_source("c", "void work(float* y) { y[0] = TURN; }", "work")
made.add_buffer("y", np.zeros(1, np.float32), "write")
made.add_parameter("TURN", [1, 2])
def progress(*_):
    print("held", flush=True)
    time.sleep(60)
ergotune.tune(made, device="host", confirm=False, progress=progress)
"""


def test_a_limit_of_time_begins_when_the_device_is_free(tmp_path, monkeypatch):
    monkeypatch.setenv("ERGOTUNE_DEVICE_LOCK", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as other:
        end = threading.Timer(2, other.kill)
        try:
            assert other.stdout.readline() == "held\n"
            end.start()
            found = tune(seconds=1)
            assert found.best is not None and found.waited_seconds > 0
        finally:
            end.cancel()
            other.kill()


def test_messages_name_keywords_instead_of_options_of_the_command(tmp_path):
    with pytest.raises(ergotune.UserError) as error:
        ergotune.tune(os.path.join(os.path.dirname(__file__), "../../examples/gemm/gemm.toml"), device="sim:a100", budget=5, prior=str(tmp_path / "absent.db"))
    assert "prior" in str(error.value) and "--" not in str(error.value)
