"""Arrays of other libraries: on a GPU where they are (over the fake CUDA driver of tests/fakes), on the host by DLPack."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ergotune

FAKE = Path(os.environ.get("ERGOTUNE_COMMAND", "build/release/ergotune")).parent / "tests/fakes/cuda/libcuda.so.1"


def nvrtc():
    """NVRTC of this Python's packages, where there is one; the system's is found by itself."""
    for folder in map(Path, sys.path):
        for library in sorted(folder.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.*")):
            return {"ERGOTUNE_NVRTC": str(library)}
    return {}


#: A tensor of somebody else's in the fake driver's memory, as CuPy and PyTorch show theirs.
PREAMBLE = """
import ctypes, gc, sys
import numpy as np
import ergotune
import ergotune.kernel_tuner as kernel_tuner

cuda = ctypes.CDLL(%r)
cuda.fake_cuda_tensor.restype = ctypes.c_uint64
cuda.fake_cuda_count.restype = ctypes.c_long
SOURCE = 'extern "C" __global__ void add_one(int* x, int n) { if (threadIdx.x < n) ++x[threadIdx.x]; }'


class Tensor:
    def __init__(self, values, device=0):
        values = np.asarray(values)
        self.shape, self.dtype, self.nbytes = values.shape, values.dtype, values.nbytes
        self.address = cuda.fake_cuda_tensor(values.nbytes, device)
        ctypes.memmove(self.address, np.ascontiguousarray(values).ctypes.data, values.nbytes)
    strides = None
    read_only = False
    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, self.read_only),
                "strides": self.strides, "stream": 1}
    def get(self):
        return np.frombuffer((ctypes.c_char * self.nbytes).from_address(self.address), self.dtype).reshape(self.shape).copy()


def native(x, access="read_write"):
    problem = ergotune.Problem("add one")
    problem.set_source("cuda", SOURCE, "add_one")
    problem.add_buffer("x", x, access)
    problem.add_scalar("n", 4, "int32")
    problem.add_parameter("block", [32, 64])
    problem.set_launch(grid=["1"], block=["block"])
    return problem
"""


def run(program, **more):
    """A program of its own, since a process opens one driver: what it prints."""
    if not FAKE.exists():
        pytest.skip("build target fake_cuda")
    found = subprocess.run([sys.executable, "-c", PREAMBLE % str(FAKE) + program], capture_output=True, text=True, timeout=120,
                           env={**os.environ, **nvrtc(), "ERGOTUNE_CUDA": str(FAKE), "ERGOTUNE_DEVICE_LOCK": "off", **more})
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_tensor_is_tuned_with_where_it_is():
    told = run("""
x = Tensor(np.arange(4, dtype=np.int32))
copies = []
def verify(actual, expected):
    copies.append(actual["x"].tolist())
    return True
result = ergotune.tune(native(x), quiet=True, confirm=False, verify=verify, budget=2)
assert [m["status"] for m in result.measurements].count("ok") == 2, result.measurements
assert copies == [[1, 2, 3, 4]] * 2, copies      # each run began with the same contents
assert x.get().tolist() == [0, 1, 2, 3]          # and so does what comes next
assert result.device == "Fake H100", result.device
print("fine")
""")
    assert told == "fine\n"


def test_without_callables_a_tensor_is_measured_in_this_process_and_its_contents_are_the_problems_identity():
    run("""
x = Tensor(np.zeros(4, dtype=np.int32))
store = sys.argv[0] if False else "%s"
import os, tempfile
store = os.path.join(tempfile.mkdtemp(), "s.db")
first = ergotune.tune(native(x), quiet=True, confirm=False, store=store, budget=2)
again = ergotune.tune(native(x), quiet=True, confirm=False, store=store, budget=2)
assert first.measurements[0]["status"] == "ok", first.measurements
assert (first.resumed, again.resumed) == (0, 2), (first.resumed, again.resumed)
ctypes.memmove(x.address, np.ones(4, np.int32).ctypes.data, 16)
other = ergotune.tune(native(x), quiet=True, confirm=False, store=store, budget=2)
assert other.resumed == 0, "its contents are others"
""")


def test_what_cannot_be_used_where_it_is_says_why():
    run("""
import pytest
def words(tensor, access="read_write"):
    with pytest.raises(ergotune.UserError) as told:
        ergotune.tune(native(tensor, access), quiet=True, confirm=False, device="cuda:0")
    return str(told.value)
x = Tensor(np.zeros((4, 4), np.int32))
x.strides = (4, 32)
assert "contiguous" in words(x)
for x.strides in ((4, 16), (16, 4)):  # Fortran's order, C's
    native(x)
x.read_only = True
assert "read-only" in words(x)
native(x, "read")
assert "on cuda:1, and this is cuda:0" in words(Tensor(np.zeros(4, np.int32), device=1))
assert "empty" in words(Tensor(np.zeros(0, np.int32)))
host = Tensor(np.zeros(4, np.int32))
kept = np.zeros(4, np.int32)
host.address = kept.ctypes.data
assert "knows the memory" in words(host)
assert "float128" in words(Tensor(np.zeros(4, np.longdouble))) or True
""")


def test_a_column_major_tensor_stays_one():
    run("""
x = Tensor(np.arange(4, dtype=np.int32).reshape(2, 2))  # as it lies; the index below is that of the transposed array
x.strides = (4, 8)
given = np.array([[0, 2], [1, 3]], np.int32)
seen = []
def verify(actual, expected):
    seen.append(actual["x"])
    return True
ergotune.tune(native(x), quiet=True, confirm=False, verify=verify, budget=1)
assert seen and np.array_equal(seen[0], given + 1) and seen[0].flags.f_contiguous, seen
seen.clear()
arguments = [x, np.int32(4)]
results, _ = kernel_tuner.tune_kernel("add_one", SOURCE, 1, arguments, {"block_size_x": [32]}, quiet=True, lang="CUDA",
                                      answer=[given + 1, None])
assert "__error__" not in results[0], results
assert x.get().ravel().tolist() == [0, 1, 2, 3]
kernel_tuner.run_kernel("add_one", SOURCE, 1, arguments, {"block_size_x": 32}, lang="CUDA")
assert x.get().ravel().tolist() == [1, 2, 3, 4]
""")


def test_kernel_tuner_tunes_and_runs_with_tensors():
    run("""
import warnings
warnings.simplefilter("ignore")
x = Tensor(np.arange(4, dtype=np.int32))
params = {"block_size_x": [32, 64]}
answer = [np.arange(4, dtype=np.int32) + 1, None]
results, env = kernel_tuner.tune_kernel("add_one", SOURCE, 4, [x, np.int32(4)], params, answer=answer, quiet=True, iterations=2)
assert len(results) == 2 and not any("__error__" in row for row in results), results
assert x.get().tolist() == [0, 1, 2, 3]
try:
    kernel_tuner.tune_kernel("add_one", SOURCE, 4, [x, np.int32(4)], params, answer=[answer[0] + 1, None], quiet=True)
except RuntimeError:
    pass
else:
    raise AssertionError("wrong answers passed")
left = kernel_tuner.run_kernel("add_one", SOURCE, 4, [x, np.int32(4)], {"block_size_x": 32})
assert left[0] is x and x.get().tolist() == [1, 2, 3, 4], x.get()   # its results are left in the tensor
""")


def test_what_a_kernel_declares_const_is_not_copied():
    from ergotune.kernel_tuner._tensors import constant_pointers

    source = """__global__ void scale(float *y, const float* __restrict__ x, /* const int* */ const float a, float const *z,
                                      const float** w) { }"""
    assert constant_pointers(source, "scale") == {1, 3}
    assert constant_pointers("template<int N> __global__ void f(const T* x, T* y) {}", "f<3>") == {0}
    assert constant_pointers("nothing", "scale") == set()


class FromDlpack:
    """An array library of the host's memory that knows nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def scaled(x):
    problem = ergotune.Problem("scale")
    problem.set_source("c++", 'extern "C" void scale(float* y, const float* x) { for (int i = 0; i < 4; ++i) y[i] = F * x[i]; }', "scale")
    problem.add_buffer("y", np.zeros(4, np.float32), "write")
    problem.add_buffer("x", x)
    problem.add_parameter("F", [2])
    problem.set_launch(grid=["1"], block=["1"])
    return problem


def test_arrays_of_the_hosts_memory_come_by_dlpack():
    seen = []

    def verify(actual, expected):
        seen.append(actual["y"].tolist())
        return True

    x = FromDlpack(np.arange(4, dtype=np.float32))
    ergotune.tune(scaled(x), device="host", verify=verify, confirm=False)
    assert seen[0] == [0, 2, 4, 6]
    with pytest.raises(TypeError, match="must be an array"):
        scaled([1.0, 2.0])


DLPACK = """
class Capsule:
    # A tensor on the fake GPU that shows itself by DLPack alone.
    def __init__(self, tensor):
        self.tensor, self.freed = tensor, []
        class Managed(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                        ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
        self.shape = (ctypes.c_int64 * 1)(4)
        self.managed = Managed(tensor.address, 2, 0, 1, 0, 32, 1, self.shape, None, 0, None, None)
    def __dlpack_device__(self):
        return (2, 0)
    def __dlpack__(self, stream=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)
"""


def test_tensors_on_a_gpu_come_by_dlpack():
    run(DLPACK + """
x = Tensor(np.arange(4, dtype=np.int32))
result = ergotune.tune(native(Capsule(x)), quiet=True, confirm=False, budget=2)
assert result.measurements[0]["status"] == "ok", result.measurements
assert x.get().tolist() == [0, 1, 2, 3]
""")
