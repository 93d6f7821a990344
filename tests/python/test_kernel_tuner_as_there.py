"""What scripts written for Kernel Tuner rely on: order of arrays in memory, Fortran, files, failures that are not silent."""

import gc
import shutil
import warnings

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
    with pytest.raises(RuntimeError):
        tune(answer=[answer.reshape(N, N).T, None, None, None])


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


# -- languages and files -----------------------------------------------------------------------------------------------

FORTRAN = """
module vector
contains
real(c_float) function add(c, a, b, n)
  use iso_c_binding
  real(c_float), intent(out), dimension(n) :: c
  real(c_float), intent(in), dimension(n) :: a, b
  integer(c_int), value, intent(in) :: n
  c = a + b
  add = 3.0 * turn
end function add
end module vector
"""


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("given", [{"lang": "C", "compiler": "gfortran"}, {"compiler": "gfortran"}, {"lang": "C"}, {},
                                   {"lang": "Fortran"}], ids=str)
def test_fortran_is_c_in_kernel_tuner(given, tmp_path):
    file = tmp_path / "vector.F90"
    file.write_text(FORTRAN)
    a = np.arange(100, dtype=np.float32)
    for source in (file, str(file), FORTRAN) if given.get("compiler") else (str(file),):
        results, env = kt.tune_kernel("add", source, 100, [np.zeros_like(a), a, a, np.int32(100)], {"turn": [2, 1]}, quiet=True,
                                      block_size_names=["turn"], answer=[2 * a, None, None, None], iterations=2, **given)
        assert {row["turn"]: row["time"] for row in results} == {2: 6.0, 1: 3.0} and env["best_config"]["turn"] == 1


OPENMP = """
module turns
  use iso_c_binding
  use omp_lib
contains
function threads(seen) result(time)
  integer(c_int), intent(out) :: seen
  real(c_float) :: time
  call omp_set_num_threads(NTHREADS)
  !$OMP parallel
  !$OMP master
  seen = omp_get_num_threads()
  !$OMP end master
  !$OMP end parallel
  time = seen
end function threads
end module turns
"""


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("options", [None, ["-fopenmp"]], ids=str)
def test_fortran_that_uses_openmp_needs_no_option(options, tmp_path):
    file = tmp_path / "turns.F90"
    file.write_text(OPENMP)
    results, _ = kt.tune_kernel("threads", str(file), 1, [np.zeros(1, np.int32)], {"NTHREADS": [1, 2]}, lang="C", compiler="gfortran",
                                compiler_options=options, block_size_names=["NTHREADS"], quiet=True, iterations=2)
    assert {row["NTHREADS"]: row["time"] for row in results} == {1: 1.0, 2: 2.0}


def test_a_c_file_is_c_whatever_compiles_it(tmp_path):
    file = tmp_path / "f.c"
    file.write_text('void f(int* x) { x[0] = 5; }')
    assert kt.run_kernel("f", str(file), 1, [np.zeros(1, np.int32)], {"n": 1}, compiler=shutil.which("gcc"))[0][0] == 5


def test_a_line_that_includes_a_file_is_source(tmp_path):
    (tmp_path / "product.cl").write_text(PRODUCT)
    out = kt.run_kernel("product", '#include "product.cl"', (N, N), arguments(), {"block_size_x": 8}, lang="OpenCL", compiler_options=[f"-I{tmp_path}"])
    np.testing.assert_allclose(out[0], A @ B, rtol=1e-5)


@pytest.mark.parametrize("source", ["kernels/missing.cl", "missing.cu", ["missing.cl"]])
def test_a_file_that_is_not_there_is_said(source, tmp_path):
    with pytest.raises(FileNotFoundError):
        kt.tune_kernel("f", source, 1, [], {"block_size_x": [1]}, **OPENCL)
    with pytest.raises(FileNotFoundError):
        kt.run_kernel("f", tmp_path / "missing.cl", 1, [], {"block_size_x": 1}, lang="OpenCL")
    with pytest.raises(FileNotFoundError):
        kt.run_kernel("f", ["__kernel void f() {}", "missing.h"], 1, [], {"block_size_x": 1}, lang="OpenCL")


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_without_parameters_there_is_nothing_to_tune():
    with pytest.raises(ValueError, match="tune_params"):
        kt.tune_kernel("f", "__kernel void f() {}", 1, [], {}, **OPENCL)


def test_what_only_a_launch_needs_is_ignored_in_simulation(tmp_path):
    file = tmp_path / "cache.json"
    tune(cache=str(file), seed=1)
    results = tune(cache=str(file), simulation_mode=True, lang="CUDA", cmem_args={"d_filter": A}, texmem_args={"t": A}, parallel=2)
    assert len(results) == 2


@pytest.mark.parametrize("lang", ["OpenCL", "C"])
def test_memory_that_a_language_has_not_is_refused(lang):
    with pytest.raises(NotImplementedError, match="cmem_args"):
        kt.tune_kernel("f", "void f() {}", 1, [], {"block_size_x": [1]}, lang=lang, quiet=True, cmem_args={"c": A})
    with pytest.raises(NotImplementedError, match="smem_args"):
        kt.tune_kernel("f", "void f() {}", 1, [], {"block_size_x": [1]}, lang="C", quiet=True, smem_args={"size": 4})


def test_a_strategy_may_be_given_by_its_module():
    assert len(tune(strategy=kt.strategies.random_sample, strategy_options={"fraction": 0.5})) == 1


def test_an_option_that_has_no_counterpart_is_named():
    with pytest.warns(UserWarning, match="searchspace_construction_options"):
        tune(strategy="random_sample", strategy_options={"fraction": 1, "searchspace_construction_options": {"framework": "pyatf"}})
    with pytest.raises(ValueError, match="fraction"):
        tune(strategy="mls", strategy_options={"fraction": 0.5})


# -- failures ----------------------------------------------------------------------------------------------------------


def test_what_verify_raises_ends_the_run_as_it_is():
    with pytest.raises(ZeroDivisionError):
        tune(verify=lambda answer, output: 1 / 0)


def test_wrong_answers_are_rows_and_a_warning_and_end_the_run_where_none_is_right():
    with pytest.raises(RuntimeError, match="2 of 2"):
        tune(answer=[A, None, None, None])
    calls = iter([True, False])
    with pytest.warns(RuntimeWarning, match="1 of 2"):
        rows = tune(verify=lambda answer, output: next(calls))
    assert sum("__error__" in row for row in rows) == 1


def test_where_nothing_works_there_is_no_best(capsys):
    with pytest.warns(RuntimeWarning, match="compile_error"):
        kt.tune_kernel("f", "__kernel void f() { nonsense }", 1, [], {"block_size_x": [1]}, lang="OpenCL")
    assert "BEST" not in capsys.readouterr().out


def test_nothing_is_left_to_the_garbage_collector():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        tune(answer=[A @ B, None, None, None])
        gc.collect()


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
