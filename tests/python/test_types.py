"""The package is typed, and says what it does."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ergotune


def test_mypy_has_nothing_to_say_of_a_typed_program(tmp_path):
    pytest.importorskip("mypy")
    example = Path(__file__).with_name("typed_example.py")
    package = Path(__file__).parents[2] / "python"
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(example)],
                         env={**os.environ, "MYPYPATH": str(package)}, capture_output=True, text=True)
    told = [line for line in run.stdout.splitlines() if "ergotune/kernel_tuner/" not in line and ": error:" in line]
    assert not told, "\n".join(told)


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
