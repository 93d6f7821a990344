"""The result document: what tune, show, plans, the page and Python report of one session validates against its schema and agrees."""

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

import ergotune

ROOT = Path(__file__).parents[2]
LIVE = """
name = "sum"
description = "partial sums"
[parameters]
STEP = [1, 2, 4]
BAD = [0, 1]
[kernel]
function = "sum"
[kernel.source.c]
text = '''
#if BAD && STEP == 4
#error no such type
#endif
void sum(float* x) { for (int i = 0; i < 200000; i += STEP) for (int j = 0; j < STEP; ++j) x[i + j] = (1.0f + BAD) / (i + j + 1) / (1 + BAD); }
'''
[[kernel.arguments]]
name = "x"
type = "float32"
count = 200000
access = "write"
[kernel.launch]
description = "one loop"
"""
CLOCKS = str(ROOT / "examples/clocks/simulated_gemm.toml")
SCHEMA = json.loads((ROOT / "schemas/result.schema.json").read_text())
#: What a session says whoever reads it; the others belong to one run, or to one reader.
OF_THE_SESSION = ("problem", "attributes", "device", "device_name", "provenance", "objective", "store", "session", "space", "rows", "statuses",
                  "best", "default", "median", "top", "search_repeats", "failures", "importance")


@pytest.fixture
def command(tmp_path):
    program = os.environ.get("ERGOTUNE_COMMAND", str(ROOT / "build/release/ergotune"))

    def run(*arguments):
        done = subprocess.run([program, *arguments, "--json"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    return run


def shared(document):
    return {key: document[key] for key in OF_THE_SESSION if key in document}


def numbers_alone(row):
    return {name: quantity["value"] for name, quantity in row["quantities"].items()}


def test_a_session_is_the_same_everywhere(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sum.toml").write_text(LIVE)
    tuned = command("tune", "sum.toml", "--device", "host", "--store", "s.db", "-q")
    assert tuned["best"]["confirmation_repeats"] > 0 and 0 < tuned["best"]["probability_best"] <= 1
    assert tuned["search_repeats"]["n"] > 0 and tuned["failures"][0]["count"] == tuned["statuses"]["compile_error"] == 1
    shown = command("show", "s.db", "--page")
    assert shared(shown) == shared(tuned)
    assert shown["attributes"] == {"description": "partial sums", "kernel.launch.description": "one loop"}
    assert [note for note in tuned["notes"] if note in shown["notes"]] == shown["notes"], "tune has those of the run too"

    page = shown["page"]["document"]
    for key in ("device", "provenance", "objective", "session", "space", "rows", "statuses", "failures"):
        assert page[key] == tuned[key], key
    assert page["median"] == pytest.approx(tuned["median"])
    assert [row["configuration"] for row in page["top"]] == [row["configuration"] for row in tuned["top"]]
    assert numbers_alone(page["best"]) == pytest.approx(numbers_alone(tuned["best"]))
    assert shown["page"]["findings"]["importance"] == tuned["importance"]

    result = ergotune.tune("sum.toml", device="host", store="s.db")
    jsonschema.validate(result.document, SCHEMA)
    assert shared(result.document) == shared(tuned)
    assert (result.evaluated, result.resumed) == (0, tuned["evaluated"])
    assert result.best == tuned["best"]["configuration"] and result.best_measurement["status"] == tuned["best"]["status"]


def test_a_parameter_that_changes_nothing_is_noted_wherever_the_session_is_read(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sum.toml").write_text(LIVE.replace("BAD = [0, 1]", "BAD = [0]\nIDLE = [1, 2]"))
    result = ergotune.tune("sum.toml", device="host", store="s.db", confirm=False)
    for document in (result.document, command("show", "s.db")):
        assert len([note for note in document["notes"] if "IDLE" in note]) == 1, document["notes"]
    result.interrupted = True
    assert "interrupted" in str(result) and "larger budget" not in str(result)


def test_plans_validate_and_count_as_a_search_does(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = "race_to_idle,model_steered"
    compared = command("tune", CLOCKS, "--device", "sim:a100", "--plan", names, "--store", "p.db", "-q")
    for plan in compared["plans"]:
        assert plan["asked"] == plan["evaluated"] + plan["known"] and plan["best"]["status"] == "ok"
    again = ergotune.compare_plans(CLOCKS, names, device="sim:a100", store="p.db")
    jsonschema.validate(again, SCHEMA)
    for plan, first in zip(again["plans"], compared["plans"]):
        assert (plan["evaluated"], plan["known"]) == (0, plan["asked"])
        assert plan["best"]["configuration"] == first["best"]["configuration"]
    measured = sum(plan["evaluated"] for plan in compared["plans"])
    assert command("show", "p.db")["rows"] == measured, "evaluated: measured in this run"
