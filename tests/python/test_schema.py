"""The published schema accepts every example and what Python writes, and refuses what ergotune refuses."""

import json
import os
import subprocess
import tomllib
from pathlib import Path

import ergotune
import jsonschema
import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas/problem.schema.json").read_text())
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.toml"))
validate = jsonschema.Draft7Validator(SCHEMA).validate


def test_the_schema_is_one_and_the_command_prints_it():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    printed = subprocess.run([os.environ["ERGOTUNE_COMMAND"], "schema"], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == SCHEMA


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_name_the_schema_and_meet_it(path):
    text = path.read_text()
    directive = text.splitlines()[0].removeprefix("#:schema ")
    assert (path.parent / directive).resolve() == ROOT / "schemas/problem.schema.json"
    validate(tomllib.loads(text))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_dicts_of_problems_meet_the_schema_and_read_back(path):
    document = ergotune.load_problem(path).to_dict()
    validate(document)
    assert ergotune.Problem.from_dict(document).to_dict() == document


GOOD = {
    "parameters": {"x": [1, 2]},
    "kernel": {"function": "f", "source": {"c": {"text": "void f(void) {}"}}, "arguments": []},
}


@pytest.mark.parametrize(
    "section, key, value",
    [
        (None, "parametrs", {}),
        (None, "description", 3),
        ("kernel", "functon", "f"),
        ("kernel", "function", 3),
        ("kernel", "source", {"basic": "f.bas"}),
        ("kernel", "arguments", [{"name": "y", "type": "float32", "count": 4, "access": "writes"}]),
        ("tune", "warm_up", "many"),
        ("execution", "core_clock_mhz", "some"),
        ("verification", "reference", "last"),
    ],
)
def test_what_ergotune_refuses_the_schema_refuses(section, key, value):
    validate(GOOD)
    ergotune.Problem.from_dict(GOOD)
    wrong = json.loads(json.dumps(GOOD))
    (wrong.setdefault(section, {}) if section else wrong)[key] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(wrong)
    with pytest.raises(ergotune.UserError):
        ergotune.Problem.from_dict(wrong)


def test_a_problem_made_in_python_is_tuned_from_its_json_file(tmp_path):
    problem = ergotune.Problem("double", description="y = 2 x")
    problem.set_source("c", "void f(int n, const float* x, float* y) { for (int i = 0; i < n; ++i) y[i] = 2 * x[i]; }", "f", description="one loop")
    problem.set_launch(description="no blocks")
    assert problem.attributes == {"description": "y = 2 x", "kernel.description": "one loop", "kernel.launch.description": "no blocks"}
    with pytest.raises(ergotune.UserError, match="descripton"):
        problem.set_launch(descripton="no blocks")
    problem.add_scalar("n", 8, "int32")
    problem.add_buffer("x", numpy.arange(8, dtype=numpy.float32))
    problem.add_buffer("y", numpy.zeros(8, dtype=numpy.float32), access="write")
    problem.add_parameter("step", [1, 2])
    document = problem.to_dict()
    validate(document)
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(document))
    run = subprocess.run([os.environ["ERGOTUNE_COMMAND"], "tune", str(file), "--device", "host", "--json", "--budget", "2"],
                         cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["best"] and result["attributes"] == problem.attributes


def test_functions_are_in_no_document():
    problem = ergotune.Problem("p")
    problem.add_parameter("x", [1, 2])
    problem.restrict(lambda values: values["x"] > 1)
    with pytest.raises(TypeError):
        problem.to_dict()
