"""The examples of docs/python-kernels.md without a GPU: by the interpreters of Triton and Numba, CuPy and PyCUDA replaced by fakes."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = "confirm=False, max_seconds=0.02, precision=0.5"
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python-kernels.md").read_text(), re.DOTALL)


def run(code, folder, **environment):
    script = folder / "example.py"
    script.write_text(code)
    environment = {**os.environ, "ERGOTUNE_DATA_DIR": str(folder / "data"), **environment}
    done = subprocess.run([sys.executable, str(script)], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_host(code):
    """On the CPU, with fewer elements and less care."""
    smaller, replaced = re.subn(r"1 << 2\d", "1 << 9", code)
    assert replaced and "setup=inputs," in code
    return smaller.replace("setup=inputs,", "setup=inputs, device='host', " + QUICK + ",")


def examples_with(module):
    found = [code for code in EXAMPLES if f"import {module}" in code or f"from {module} " in code]
    assert found
    return found


@pytest.mark.parametrize("framework", ["cupy", "pycuda"])
def test_examples_over_fakes(framework, tmp_path):
    for code in examples_with(framework):
        path = os.pathsep.join([str(ROOT / "tests/fakes/python"), os.environ.get("PYTHONPATH", "")])
        printed = run(on_host(code), tmp_path, PYTHONPATH=path)
        assert "'block':" in printed and "measured" in printed


def test_examples_in_numbas_simulator(tmp_path):
    pytest.importorskip("numba", reason="the package numba is not installed")
    for code in examples_with("numba"):
        printed = run(on_host(code), tmp_path, NUMBA_ENABLE_CUDASIM="1")
        assert "'block':" in printed and "measured" in printed


def test_arrays_of_numba_begin_each_configuration_with_their_contents(tmp_path):
    pytest.importorskip("numba", reason="the package numba is not installed")
    run("""
import numpy as np
from numba import cuda

import ergotune


def inputs():
    return {"x": cuda.to_device(np.arange(8.0))}


@cuda.jit
def increment(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] += 1


def incremented(x, block):
    return lambda: increment[1, block](x)


def reference(x):
    return {"x": x.copy_to_host() + 1}


if __name__ == "__main__":
    result = ergotune.tune_callable(incremented, {"block": [1, 2, 4]}, setup=inputs, verify=reference, device="host", confirm=False,
                                    max_seconds=0.02, precision=0.5)
    assert not any(m["status"] == "wrong_result" for m in result.measurements) and len(result) == 3, result
""", tmp_path, NUMBA_ENABLE_CUDASIM="1")


def test_examples_in_tritons_interpreter(tmp_path):
    if not all(map(importlib.util.find_spec, ("triton", "torch"))):
        pytest.skip("the packages triton and torch (800 MB) are not both installed")
    for code in examples_with("triton"):
        for given, smaller in (("100_000", "2_000"), ("64, 5000", "4, 500"), ("(64,", "(4,"), ("out, 5000", "out, 500"),
                               ('objective="time")', 'objective="time", ' + QUICK + ")"), ("budget=12", "budget=4, " + QUICK)):
            code = code.replace(given, smaller)
        run(code, tmp_path, TRITON_INTERPRET="1")
