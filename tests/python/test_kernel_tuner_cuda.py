"""CUDA kernels through Kernel Tuner's interface: NVRTC's own code, the driver a fake at the real boundary (tests/fakes/cuda)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ergotune.kernel_tuner as kt
from ergotune.kernel_tuner._constants import with_constants

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("ERGOTUNE_COMMAND", ROOT / "build/release/ergotune")).parent

PROGRAM = r"""
import json, warnings
import numpy as np
import ergotune.kernel_tuner as kt
from ergotune.kernel_tuner.observers import BenchmarkObserver, RegisterObserver

class OfModule(BenchmarkObserver):
    def get_results(self):
        return {"of_module": self.dev.current_module.get_function("add_one").num_regs}

class OfMemory(BenchmarkObserver):
    def get_results(self):
        return {"outputs": self.dev.allocations}

source = '''
__constant__ float2 filter[SIZE];
constexpr int first(int i) { return i - i; }
extern "C" __global__ void add_one(int* x, int n) {
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) x[i] += filter[first(i)].y;
}'''

def tune(**more):
    return kt.tune_kernel("add_one", source, 64, [np.zeros(64, np.int32), np.int32(64)], {"block_size_x": [32, 64], "SIZE": [2]}, quiet=True,
                          iterations=2, cmem_args={"filter": np.ones(4, np.float32)}, compiler_options=options, **more)[0]

options = ["-O3", "-Xptxas", "-v", "--expt-relaxed-constexpr", "-gencode", "arch=compute_90,code=sm_90", "-Xcompiler=-Wall", "-lineinfo", "-DTWO=2"]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    rows = tune(observers=[RegisterObserver(), OfModule()], metrics={"twice": lambda p: 2 * p["num_regs"]})
try:
    refused = tune(observers=[OfMemory()])
except kt.NotSupported as failure:
    refused = str(failure)
print(json.dumps({"rows": rows, "said": [str(w.message) for w in said], "refused": refused}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    fake = BUILD / "tests/fakes/cuda/libcuda.so.1"
    if not fake.exists():
        pytest.skip("build target fake_cuda")
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200,
                         env={**os.environ, "ERGOTUNE_CUDA": str(fake), "ERGOTUNE_STATE_DIR": str(folder), "ERGOTUNE_DATA_DIR": str(folder)})
    if ran.returncode and "NVRTC" in ran.stderr:
        pytest.skip("no NVRTC here: " + ran.stderr.strip().splitlines()[-1])
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_observers_find_the_registers_where_kernel_tuners_backends_have_them(found):
    for row in found["rows"]:
        assert row["num_regs"] == row["of_module"] > 0 and row["twice"] == 2 * row["num_regs"]


def test_options_that_only_nvcc_has_are_left_out_and_named(found):
    assert len(found["rows"]) == 2 and all("__error__" not in row for row in found["rows"])
    named = " ".join(found["said"])
    assert all(option in named for option in ("-O3", "-gencode", "-Xcompiler")) and "-lineinfo" not in named and "-DTWO" not in named


def test_what_observers_cannot_reach_is_named(found):
    assert "allocations" in found["refused"] and "OutputObserver" in found["refused"]


@pytest.mark.parametrize("declared, array, kept", [
    ("float v[4]", np.array([0.1, -1e-30, 3e38], np.float32), "float"), ("static double v[W][2]", np.array([[0.1, 2], [1e-300, -4]]), "double"),
    ("pair v[2]", np.array([1 + 2j, 3 - 4j], np.complex64), "float"), ("long long v[2]", np.array([-(1 << 63), (1 << 63) - 1]), "long long"),
    ("unsigned long long v[1]", np.array([(1 << 64) - 1], np.uint64), "unsigned long long"), ("alignas(16) int v", np.int32(7), "int"),
    ("unsigned char a[1] = {1}; __constant__ unsigned char v[3]", np.array([1, 0, 255], np.uint8), "unsigned char")])
def test_constant_memory_holds_the_arrays_elements(declared, array, kept):
    source = with_constants(f"struct pair {{ float x, y; }};\n__constant__ {declared};\n", {"v": array}, "cuda")
    flat = np.ravel(array)
    count, out = flat.nbytes // np.dtype({"float": "f4", "double": "f8", "int": "i4", "unsigned char": "u1"}.get(kept, "i8")).itemsize, np.zeros_like(flat)
    copy = f'extern "C" void copy({kept}* out) {{ for (int i = 0; i < {count}; ++i) out[i] = (({kept}*)&v)[i]; }}'
    left = kt.run_kernel("copy", "#define __constant__\n" + source + copy, 1, [out], {"W": 2}, lang="C")[0]
    np.testing.assert_array_equal(left, flat)


@pytest.mark.parametrize("array, failure", [(np.array([np.nan], np.float32), kt.NotSupported), (np.zeros(2, np.float16), kt.NotSupported),
                                            (np.zeros(2, np.int32), ValueError)], ids=["nan", "half", "not declared"])
def test_constant_memory_that_cannot_be_filled_is_refused(array, failure):
    with pytest.raises(failure, match="v"):
        with_constants("__constant__ float w[2];", {"v": array}, "cuda")
