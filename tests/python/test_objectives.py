"""Every kind of objective: Python resumes what the command has tuned, and tells the same winner, numbers and direction."""

import json
import os
import subprocess

import pytest

import ergotune

PROBLEM = """
name = "objectives"
objective = OBJECTIVE
[constants]
N = 4096
[parameters]
W = [1, 2, 8]
turn = [1, 4]
[metrics]
rate = { expression = "N * W / time", unit = "1/s" }
[kernel]
function = "work"
arguments = [{ name = "b", type = "float32", count = "N", access = "write" }]
[kernel.source.c]
text = '''
void work(float* b) {
  for (int i = 0; i < N; ++i) b[i] = i;
  for (volatile int k = 0; k < 20000 * turn; ++k) {}
}
'''
"""

CASES = {
    "time": ('"time"', "min"),
    "metric_as_text": ('"max rate"', "max"),
    "metric_as_table": ('{ expression = "rate", direction = "max" }', "max"),
    "weighted": ('"0.5 * time + 100 / rate"', "min"),
    "constrained": ('"time subject to rate >= 0.5 * best(rate)"', "min"),
    "lexicographic": ('"lexicographic(time within 30%, max rate)"', "min"),
    "pareto": ('"pareto(time, max rate)"', "min"),
}


def command(folder, *words):
    result = subprocess.run([os.environ["ERGOTUNE_COMMAND"], *words], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


@pytest.mark.parametrize("written, direction", CASES.values(), ids=CASES)
def test_python_resumes_the_commands_session_and_tells_the_same(tmp_path, written, direction):
    (tmp_path / "p.toml").write_text(PROBLEM.replace("OBJECTIVE", written))
    store = str(tmp_path / "s.db")
    told = command(tmp_path, "tune", "p.toml", "--device", "host", "--strategy", "brute_force", "--store", store,
                   "--precision", "0.3", "--json", "--quiet")
    assert told["best"], told
    result = ergotune.tune(tmp_path / "p.toml", device="host", strategy="brute_force", store=store, precision=0.3, confirm=False)
    assert result.evaluated == 0, "what the command has stored is known"
    assert result.direction == told["objective"]["direction"] == direction
    assert result.best == told["best"]["configuration"]
    for name, quantity in told["best"]["quantities"].items():
        assert result.best_measurement["quantities"][name]["value"] == quantity["value"], name
    assert result.best_measurement["metrics"] == told["best"]["metrics"]


@pytest.mark.parametrize("written, direction", CASES.values(), ids=CASES)
def test_the_command_shows_what_python_has_tuned(tmp_path, written, direction):
    (tmp_path / "p.toml").write_text(PROBLEM.replace("OBJECTIVE", written))
    store = tmp_path / "s.db"
    result = ergotune.tune(tmp_path / "p.toml", device="host", strategy="brute_force", store=store, precision=0.3)
    assert result.evaluated == 6 and result.direction == direction
    shown = command(tmp_path, "show", str(store), "--json")
    assert shown["objective"]["direction"] == direction
    assert shown["best"]["configuration"] == result.best
    assert shown["best"]["quantities"]["time"]["value"] == result.best_measurement["quantities"]["time"]["value"]
