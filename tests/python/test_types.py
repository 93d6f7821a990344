"""The package is typed, and says what it does."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ergotune


def mypy(file, cache):
    """Errors outside of the Kernel Tuner layer's own files, of which the public functions are typed."""
    pytest.importorskip("mypy")
    package = Path(__file__).parents[2] / "python"
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(file)],
                         env={**os.environ, "MYPYPATH": str(package)}, capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if "ergotune/kernel_tuner/" not in line and ": error:" in line]


def test_mypy_has_nothing_to_say_of_a_typed_program(tmp_path):
    told = mypy(Path(__file__).with_name("typed_example.py"), tmp_path)
    assert not told, "\n".join(told)


def test_mypy_finds_mistakes_in_settings_and_in_calls_of_kernel_tuners_interface(tmp_path):
    lines = ["import ergotune, ergotune.kernel_tuner as kt", 'ergotune.tune("p.toml", budgett=3)', 'ergotune.tune("p.toml", budget=[3])',
             'ergotune.Session("p.toml", confirm="x")', 'kt.tune_kernel("f", "f.cl", 1, [], {"n": [1]}, iterations="x")',
             'kt.run_kernel("f", "f.cl", 1, [], {"n": 1}).nothing']
    (tmp_path / "wrong.py").write_text("\n".join(lines))
    found = mypy(tmp_path / "wrong.py", tmp_path / "cache")
    assert {line.split(":")[1] for line in found} == {str(n) for n in range(2, len(lines) + 1)}, found


def test_the_typed_settings_are_those_of_the_table():
    from ergotune._settings import AllSettings

    assert set(AllSettings.__annotations__) == {row["name"] for row in ergotune._core.settings()}


def test_the_typed_program_runs():
    from typed_example import main

    main()


def test_the_stubs_have_what_the_module_has():
    stubs = (Path(__file__).parents[2] / "python/ergotune/_core.pyi").read_text()
    for name, value in vars(ergotune._core).items():
        if name.startswith("_"):
            continue
        assert f" {name}(" in stubs or f" {name}:" in stubs, name
        if inspect.isclass(value):
            for member in vars(value):
                if not member.startswith("_"):
                    assert f" {member}(" in stubs or f" {member}:" in stubs, f"{name}.{member}"


@pytest.mark.parametrize("name", ergotune.__all__)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(ergotune, name)), name


@pytest.mark.parametrize("kind", [ergotune.Problem, ergotune.SearchSpace, ergotune.Strategy, ergotune.Result])
def test_every_method_is_documented(kind):
    for name, member in vars(kind).items():
        if name.startswith("_") or not callable(member):
            continue
        text = [line for line in (inspect.getdoc(member) or "").splitlines() if not line.startswith(f"{name}(")]
        assert any(line.strip() for line in text), f"{kind.__name__}.{name}"
