"""Mistakes in a program: refused before anything is measured, in words that say what to mend."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ergotune

SOURCE = "void work(float* y) { for (int i = 0; i < 64; ++i) y[i] = TURN; }"


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


def test_a_parameter_with_a_quantitys_name_has_a_column_of_its_own():
    table = tune(problem(TURN=[1], time=[3, 4], status=[5])).to_numpy()
    assert set(table["time"]) == {3, 4} and set(table["status"]) == {5}
    assert np.all(table["time_"] < 1) and set(table["status_"]) <= {"ok", "not_converged"}


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
             lambda: ergotune.Session(made, device="host"),
             lambda: ergotune.watch("."), lambda: ergotune.analyse("x.json"), lambda: ergotune.temperature("x.toml")):
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
