"""The Python package on its own."""

import inspect
import json
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import ergotune

SOURCE = """__kernel void saxpy(__global float *y, __global const float *x, float a) {
    int i = get_global_id(0); y[i] = a * x[i];
}"""


def make_problem(values=(32, 64, 128)):
    problem = ergotune.Problem("saxpy")
    problem.set_source("opencl", SOURCE, "saxpy")
    x = np.linspace(1, 2, 4096, dtype=np.float32)
    problem.add_buffer("y", np.zeros_like(x), "write")
    problem.add_buffer("x", x)
    problem.add_scalar("a", 3.0, "float32")
    problem.set_launch(global_size=[4096], block=["block"])
    problem.add_parameter("block", values)
    return problem


def test_tune_a_problem_made_in_python():
    result = ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False)
    assert len(result) == 3
    assert result.best["block"] in (32, 64, 128)
    table = result.to_numpy()
    assert table.shape == (3,) and np.all(table["time"] > 0) and set(table["status"]) <= {"ok", "not_converged"}


def test_verification_and_observers_in_python():
    seen = []

    class Watch(ergotune.Observer):
        def register_configuration(self, configuration):
            seen.append(configuration["block"])

        def get_results(self):
            return {"watched": [1.0, 2.0, 3.0]}

    def verify(actual, expected):
        return np.allclose(actual["y"], 3 * np.linspace(1, 2, 4096, dtype=np.float32))

    result = ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False, verify=verify, observers=[Watch()])
    assert set(seen) == {32, 64, 128}
    watched = result.measurements[0]["quantities"]["watched"]
    assert watched["value"] == 2.0 and watched["n"] == 3
    assert np.isnan(result.best_measurement["quantities"]["error"]["value"]), "the function returns no error"
    assert "outputs agree" in str(result) and "largest relative error" not in str(result)
    wrong = ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False, verify=lambda a, e: False)
    assert all(m["status"] == "wrong_result" for m in wrong.measurements)
    assert wrong.best is None


def test_restrictions_generators_and_spaces():
    problem = make_problem((1, 2, 4, 8, 16))
    problem.add_range("tile", 1, "block + 1", 1)
    problem.add_generator("half", lambda earlier: [earlier["tile"] // 2, earlier["tile"]])
    problem.restrict("block * tile <= 32")
    problem.restrict(lambda p: p["tile"] != 3, name="no threes")
    space = ergotune.SearchSpace(problem)
    brute = [(b, t, h) for b in (1, 2, 4, 8, 16) for t in range(1, b + 1) for h in dict.fromkeys((t // 2, t)) if b * t <= 32 and t != 3]
    found = {tuple(space[i].values()) for i in range(len(space))}
    assert found == set(brute)
    assert space.index_of({"block": 4, "tile": 3, "half": 1}) is None
    assert len(set(space.sample(10, seed=3))) == 10
    assert space.sample(5, seed=3) == space.sample(5, seed=3)


def test_a_strategy_of_the_users_own():
    class Backwards:
        def __init__(self, space, seed, options):
            self.left = list(range(len(space)))
            self.told = []

        def ask(self, count):
            taken = [self.left.pop() for _ in range(min(count, len(self.left)))]
            return taken

        def tell(self, index, values, ok):
            self.told.append(index)

    made = []
    ergotune.register_strategy("backwards", lambda space, seed, options: made.append(Backwards(space, seed, options)) or made[-1])
    result = ergotune.tune(make_problem(), device="opencl", strategy="backwards", confirm=False)
    assert len(result) == 3 and set(made[0].told) == {0, 1, 2}  # what changes in hindsight is told again


def test_ask_and_tell_by_hand():
    space = ergotune.SearchSpace(make_problem(list(range(1, 40))))
    strategy = ergotune.Strategy("random", space, seed=4)
    asked = []
    while batch := strategy.ask(4):
        for index in batch:
            asked.append(index)
            strategy.tell(index, float(space[index]["block"]))
    assert sorted(asked) == list(range(len(space)))


def test_errors_are_the_users_to_mend():
    with pytest.raises(ergotune.UserError, match="nosuch"):
        ergotune.tune(make_problem(), device="nosuch")
    with pytest.raises(ergotune.UserError):
        ergotune.SearchSpace(make_problem())["x"] if False else ergotune.parse_problem("[problem]\nnaem = 1\n")


def test_a_result_says_why_nothing_worked():
    problem = ergotune.Problem("p")
    problem.set_source("c", "void work(float* a) {\n  a[0] = nonesuch + turn;\n}", "work")
    problem.add_buffer("a", np.zeros(4, np.float32), "write")
    problem.add_parameter("turn", [1, 2])
    result = ergotune.tune(problem, device="host")
    assert result.best is None
    assert "nothing worked, most of all compile_error: " in repr(result) and "nonesuch" in repr(result)
    with pytest.raises(TypeError, match="ergotune.Problem or the path of a problem file, not dict"):
        ergotune.tune({"turn": [1]})


def test_the_gil_is_free_while_tuning():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False)
    stop.set()
    thread.join()
    assert len(ticks) > 3


def test_simulated_devices_say_so():
    problem = make_problem()
    result = ergotune.tune(problem, device="sim:a100", strategy="brute_force", confirm=False)
    assert all(q["provenance"] == "simulated" for m in result.measurements for q in m["quantities"].values())


def test_what_matters_is_what_show_says(tmp_path):
    root = Path(__file__).parents[2]
    store = str(tmp_path / "s.db")
    result = ergotune.tune(str(root / "examples/gemm/gemm.toml"), device="sim:a100", budget=40, store=store)
    assert len(result.importance["shares"]) >= 2
    command = os.environ.get("ERGOTUNE_COMMAND", str(root / "build/release/ergotune"))
    shown = subprocess.run([command, "show", store, "--json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown)["importance"] == result.importance


def test_quantities_are_those_of_the_table():
    known = ergotune.quantities()
    assert known["energy"] == {"unit": "J", "meaning": "energy of one round", "producer": "sensor", "better": "min"}
    assert known["local_bytes"]["unit"] == "B" and known["local_bytes"]["better"] is None


MODELLED = """
name = "modelled"
[parameters]
block_size_x = [32, 64, 128, 256]
[kernel]
function = "f"
[kernel.source.opencl]
text = "kernel void f() {}"
[kernel.launch]
grid = [4096]
block = ["block_size_x"]
"""


def test_every_setting_is_a_keyword(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text(MODELLED)
    values = {"device": "sim:a100", "objective": "max 1/time", "strategy": "random", "budget": 3, "strategy_options": {},
              "store": tmp_path / "s.db", "sensors": ["none"], "controls": "none", "cache_dir": tmp_path, "verify": False, "occupancy": 0.1,
              "prior": ["auto"], "precision": "50%", "node_commands": [], "nodes": ""}
    signature = inspect.signature(ergotune.tune)
    for row in ergotune._core.settings():
        name = row["name"]
        value = values.get(name, row["default"] == "False" if row["default"] in ("True", "False") else 2)
        if name == "plan":
            with pytest.raises(ergotune.UserError, match="compare_plans"):
                ergotune.tune(file, plan="race_to_idle")
            continue
        assert name in signature.parameters
        assert name in ergotune.tune.__doc__
        result = ergotune.tune(file, **{"device": "sim:a100", name: value})
        assert result.best, name
    assert ergotune.tune(file, device="sim:a100", budget=3, confirm=False).evaluated == 3
    assert ergotune.tune(file, device="sim:a100", objective="max 1/time").direction == "max"
    with pytest.raises(TypeError, match="did you mean 'budget'"):
        ergotune.tune(file, device="sim:a100", budgte=3)
    with pytest.raises(ergotune.UserError, match="precision must be greater than 0, not -1"):
        ergotune.tune(file, device="sim:a100", precision=-1)


def test_observers_by_name():
    result = ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False,
                           observers=["host_time:passes=4"])
    assert result.best_measurement["quantities"]["host_time"]["n"] == 4
    with pytest.raises(ergotune.UserError, match="did you mean \"host_time\""):
        ergotune.tune(make_problem(), device="opencl", observers=["host_tiem"])


def test_another_verify_begins_a_new_session(tmp_path):
    def right(limit):
        return lambda actual, expected: actual["y"].max() < limit

    def evaluated(verify):
        return ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False, store=tmp_path / "r.db", verify=verify).evaluated

    every = evaluated(right(1e9))
    assert every > 0 and evaluated(right(1e9)) == 0, "the same function, made again"
    assert evaluated(right(2e9)) == every, "it closes over another value"
    assert evaluated(None) == every


def test_metrics_are_expressions_or_functions():
    result = ergotune.tune(make_problem(), device="opencl", strategy="brute_force", confirm=False, objective="max rate",
                           metrics={"rate": "10 / time", "double": lambda row: 2 * row["rate"]})
    metrics = result.best_measurement["metrics"]
    assert metrics["double"] == 2 * metrics["rate"] == max(2 * m["metrics"]["rate"] for m in result.measurements if m["metrics"])
    with pytest.raises(ergotune.UserError):
        ergotune.tune(make_problem(), device="opencl", metrics={"rate": "10 / "})
    with pytest.raises(TypeError, match="rate"):
        ergotune.tune(make_problem(), device="opencl", metrics={"rate": 3})


def test_metrics_that_are_functions_have_the_intervals_of_expressions(tmp_path):
    seen = {}

    def first(row):
        return seen.setdefault((row["block_size_x"], row["work_per_thread"], row["vector_width"]), row["energy"])

    def only_there(row):
        return {first(row): 1.0}[row["energy"]]

    def at_most_there(row):
        return row["energy"] if row["energy"] <= first(row) else None

    given = {"product": "energy * time", "same": lambda row: row["energy"] * row["time"], "twice": lambda row: 2 * row["same"],
             "threads": lambda row: row["block_size_x"], "only_there": only_there, "at_most_there": at_most_there}
    file = str(Path(__file__).parents[2] / "examples/vector_add/vector_add.toml")
    result = ergotune.tune(file, device="sim:a100", budget=4, metrics=given, store=tmp_path / "r.db")
    for measurement in result.measurements:
        half = measurement["metric_half_widths"]
        assert half["same"] == pytest.approx(half["product"]) and half["product"] > 0
        assert half["twice"] == pytest.approx(2 * half["same"])
        assert half["threads"] == 0, "known exactly"
        assert half["only_there"] is None, "unknown"
        assert half["at_most_there"] == pytest.approx(measurement["quantities"]["energy"]["half_width"])
    again = ergotune.tune(file, device="sim:a100", budget=4, metrics=given, store=tmp_path / "r.db")
    assert again.evaluated == 0
    assert [m["metric_half_widths"] for m in again.measurements] == [m["metric_half_widths"] for m in result.measurements]
    assert np.isnan(again.to_pandas().only_there_half_width).all() and "only_there" in str(again)
