"""What scripts written for Kernel Tuner rely on: order of arrays in memory, Fortran, files, failures that are not silent."""

import numpy as np
import pytest

import ergotune
import ergotune.kernel_tuner as kt

OPENCL = {"lang": "OpenCL", "quiet": True, "iterations": 3}
N = 16
#: C = A * B of N x N matrices, each column after column.
PRODUCT = """__kernel void product(__global float* c, __global const float* a, __global const float* b, int n) {
    int i = get_global_id(0), j = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[k * n + i] * b[j * n + k];
    c[j * n + i] = sum;
}"""
PRODUCT_IN_C = """
extern "C" void product(float* c, float* a, float* b, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      c[j * n + i] = 0;
      for (int k = 0; k < n; ++k) c[j * n + i] += a[k * n + i] * b[j * n + k];
    }
}"""
A, B = (np.asfortranarray(np.random.default_rng(seed).random((N, N), dtype=np.float32)) for seed in (1, 2))


def arguments():
    return [np.zeros((N, N), np.float32, order="F"), A, B, np.int32(N)]


def tune(**more):
    return kt.tune_kernel("product", PRODUCT, (N, N), arguments(), {"block_size_x": [4, 8], "block_size_y": [4]}, **{**OPENCL, **more})[0]


# -- order in memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source, lang", [(PRODUCT, "OpenCL"), (PRODUCT_IN_C, "C")])
def test_column_major_arrays_reach_the_kernel_and_come_back_as_they_lie_in_memory(source, lang):
    out = kt.run_kernel("product", source, (N, N), arguments(), {"block_size_x": 8, "block_size_y": 8}, lang=lang)
    np.testing.assert_allclose(out[0], A @ B, rtol=1e-5)
    assert out[0].shape == (N, N) and out[0].flags.f_contiguous and out[1].flags.f_contiguous
    np.testing.assert_array_equal(out[1], A)


@pytest.mark.parametrize("answer", [np.asfortranarray(A @ B), np.ascontiguousarray(A @ B), (A @ B).ravel(),
                                    (A @ B).astype(np.float64)], ids=["F", "C", "flat", "double"])
def test_an_answer_is_compared_by_index_however_it_lies(answer):
    assert all("__error__" not in row for row in tune(answer=[answer, None, None, None]))
    assert all("__error__" in row for row in tune(answer=[answer.reshape(N, N).T, None, None, None]))


def test_verify_and_observers_get_outputs_in_their_own_order():
    seen = []

    class Output(kt.BenchmarkObserver):
        def process_output(self, answer, output):
            seen.append(output[0])

        def get_results(self):
            return {}

    def verify(answer, output):
        seen.append(output[0])
        return np.allclose(output[0], answer[0], rtol=1e-4)

    assert all("__error__" not in row for row in tune(answer=[A @ B, None, None, None], verify=verify, observers=[Output()]))
    assert seen and all(array.shape == (N, N) and array.flags.f_contiguous for array in seen)


def test_complex_and_bool_arrays_keep_their_order():
    source = "__kernel void f(__global float2* z, __global uchar* b) { if (get_global_id(0) == 1) { z[1] = (float2)(7, 8); b[1] = 1; } }"
    z, b = np.zeros((3, 4), np.complex64, order="F"), np.zeros((3, 4), bool, order="F")
    out = kt.run_kernel("f", source, 2, [z, b], {"block_size_x": 1}, lang="OpenCL")
    assert out[0][1, 0] == 7 + 8j and out[1][1, 0] and np.count_nonzero(out[0]) == np.count_nonzero(out[1]) == 1


@pytest.mark.parametrize("array", [np.zeros((8, 8), np.float32)[:, ::2], np.zeros((4, 2, 3), np.float32).transpose(1, 0, 2),
                                   np.broadcast_to(np.float32(1), (4, 4))], ids=["slice", "permuted", "broadcast"])
def test_an_array_with_gaps_is_refused_as_kernel_tuners_gpu_backends_refuse_it(array):
    with pytest.raises(ValueError, match="contiguous"):
        kt.run_kernel("f", "__kernel void f(__global float* x) {}", 1, [array], {"block_size_x": 1}, lang="OpenCL")


# -- the native way ----------------------------------------------------------------------------------------------------


def native(c=None):
    problem = ergotune.Problem("product")
    problem.set_source("opencl", PRODUCT, "product")
    for name, array, access in (("c", arguments()[0] if c is None else c, "write"), ("a", A, "read"), ("b", B, "read")):
        problem.add_buffer(name, array, access)
    problem.add_scalar("n", N, "int32")
    problem.set_launch(global_size=[N, N], block=["block", 4])
    problem.add_parameter("block", [4, 8])
    return problem


def test_a_problem_takes_arrays_as_they_lie_and_gives_them_back_so():
    seen = []

    def verify(actual, expected):
        seen.append(actual["c"])
        return np.allclose(actual["c"], A @ B, rtol=1e-4)

    result = ergotune.tune(native(), device="opencl", confirm=False, verify=verify, precision=0.5)
    assert [m["status"] in ("ok", "not_converged") for m in result.measurements] == [True] * 2
    assert all(array.shape == (N, N) and array.flags.f_contiguous for array in seen)
    with pytest.raises(ergotune.UserError, match="gaps"):
        native(np.zeros((N, 2 * N), np.float32)[:, ::2])
