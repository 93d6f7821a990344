"""tune_kernel's and run_kernel's arguments, one by one."""

import os
import shutil

import numpy as np
import pytest

import ergotune
import ergotune.kernel_tuner as kt
from ergotune.kernel_tuner.observers import BenchmarkObserver, OutputObserver, PrologueObserver, RegisterObserver

FILL = "__kernel void f(__global float *y) { y[get_global_id(0)] = 1.0f; }"
X = np.ones(4096, np.float32)
OPENCL = {"lang": "OpenCL", "quiet": True, "iterations": 3}

ADD = """
extern "C" RETURNS add(float *c, float *a, float *b, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    VALUE
}"""


def fill(params=None, **more):
    return kt.tune_kernel("f", FILL, 4096, [np.zeros_like(X)], params or {"block_size_x": [32, 64]}, **{**OPENCL, **more})


def add_arguments():
    a = np.arange(100, dtype=np.float32)
    return [np.zeros_like(a), a, a, np.int32(100)]


# -- C ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", [None, "C"])
def test_what_a_c_function_returns_is_its_time_in_ms(lang):
    source = ADD.replace("RETURNS", "float").replace("VALUE", "return 3.0f * work;")
    results, env = kt.tune_kernel("add", source, 100, add_arguments(), {"work": [2, 1]}, lang=lang, quiet=True, iterations=4,
                                  answer=[2 * np.arange(100), None, None, None], block_size_names=["work"])
    assert {r["work"]: r["time"] for r in results} == {2: 6.0, 1: 3.0}
    assert all(r["times"] == [r["time"]] * 4 for r in results)
    assert env["best_config"]["work"] == 1


def test_a_c_function_that_returns_nothing_is_timed():
    source = ADD.replace("RETURNS", "void").replace("VALUE", "")
    results, _ = kt.tune_kernel("add", source, 0, add_arguments(), {"work": [1]}, lang="C", quiet=True)
    assert 0 < results[0]["time"] < 10


def test_run_kernel_of_c_gives_what_it_left():
    source = ADD.replace("RETURNS", "float").replace("VALUE", "c[0] += 0.5f; return 1;")
    out = kt.run_kernel("add", source, 100, add_arguments(), {"work": 1}, lang="C")
    assert out[0][0] == 0.5 and out[0][99] == 198 and out[3] == 100


@pytest.mark.parametrize("openmp", [["-fopenmp"], []], ids=["asked for", "by its header"])
def test_openmp_and_compiler_options_reach_the_compiler(openmp):
    source = '#include <omp.h>\nextern "C" void f(int *y) {\n#pragma omp parallel num_threads(threads)\n#pragma omp single\n' \
             "y[0] = omp_get_num_threads() + OFFSET; }"
    for threads in (1, 2):  # the second kernel meets the first one's threads
        out = kt.run_kernel("f", source, 1, [np.zeros(1, np.int32)], {"threads": threads}, lang="C",
                            compiler_options=[*openmp, "-DOFFSET=10"])
        assert out[0][0] == 10 + threads


def test_the_compiler_is_the_one_that_was_asked_for():
    source = ADD.replace("RETURNS", "void").replace("VALUE", "")
    with pytest.raises(ergotune.UserError, match="no-such-compiler"):
        kt.tune_kernel("add", source, 100, add_arguments(), {"work": [1]}, lang="C", quiet=True, compiler="no-such-compiler")
    kt.tune_kernel("add", source, 100, add_arguments(), {"work": [1]}, lang="C", quiet=True, compiler="g++")


@pytest.mark.parametrize("given, uses", [
    ({"compiler": "nvcc"}, ""), ({}, "cudaMemcpy"), ({"compiler": "g++"}, "threadIdx"), ({"file": "add.cu"}, ""), ({}, None),
    ({"compiler": "c++"}, None)], ids=str)
def test_c_functions_with_cuda_in_them_are_compiled_by_nvcc(given, uses, tmp_path, monkeypatch):
    command = tmp_path / "nvcc"  # takes the options that nvcc needs to pass others on, and leaves the rest to g++
    command.write_text('#!/bin/sh\n[ "$1 $2 $3" = "-x cu --forward-unknown-to-host-compiler" ] || exit 3\nshift 3\nexec g++ -DBY_NVCC=1 "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    source = f'/* {uses} */\n#ifndef BY_NVCC\n#define BY_NVCC 0\n#endif\nextern "C" void f(int* y) {{ y[0] = BY_NVCC; }}'
    if file := given.pop("file", None):
        (tmp_path / file).write_text(source)
        source = str(tmp_path / file)
    assert kt.run_kernel("f", source, 1, [np.zeros(1, np.int32)], {"x": 1}, lang="C", **given)[0][0] == (uses is not None)


FORTRAN = """
module vectors
use iso_c_binding
contains
FUNCTION
  real(c_float), intent(out) :: c(n)
  real(c_float), intent(in) :: a(n), b(n)
  integer(c_int), INTENT :: n
  c = a + b + offset
  LAST
END FUNCTION
end module vectors
"""


@pytest.mark.skipif(not shutil.which("gfortran"), reason="no Fortran compiler")
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("by", ["value", "intent(in)"])
@pytest.mark.parametrize("head", ["subroutine add(c, a, b, n)", "real(c_float) function add(c, a, b, n)",
                                  "function add(c, a, b, &\n      n) result(t) bind(c)\n  real(c_float) :: t"])
def test_fortran_procedures_with_values_in_modules_and_with_their_time(head, by, inside):
    returns = "function" in head
    last = "" if not returns else "t = 4.0" if "result" in head else "add = 4.0"
    source = FORTRAN.replace("END FUNCTION", f"end {'function' if returns else 'subroutine'} add").replace("FUNCTION", head)
    source = source.replace("INTENT", by).replace("LAST", last)
    if not inside:
        body = source.split("contains\n")[1].split("end module")[0]
        source = body.replace(head, head.split("\n  real")[0] + "\n  use iso_c_binding" + ("\n  real(c_float) :: t" if "result" in head else ""))
        source = source.replace("real(c_float) function", "real(4) function")
    call = ("add", source, 100, add_arguments())
    out = kt.run_kernel(*call, {"offset": 2}, lang="Fortran")
    np.testing.assert_array_equal(out[0], 2 * np.arange(100) + 2)
    if inside:
        results, _ = kt.tune_kernel(*call, {"offset": [2]}, lang="Fortran", quiet=True, iterations=2)
        assert (results[0]["time"] == 4.0) == returns


# -- geometry --------------------------------------------------------------------------------------------------------


def blocks_of(**more):
    """How many threads a block has and how many blocks there are, as the kernel saw them."""
    source = "__kernel void f(__global int *y) { y[0] = get_local_size(0); y[1] = get_num_groups(0); y[2] = get_num_groups(1); }"
    call = {"problem_size": 1024, "params": {"block_size_x": 64}, "lang": "OpenCL", **more}
    out = kt.run_kernel("f", source, call.pop("problem_size"), [np.zeros(4, np.int32)], call.pop("params"), **call)
    return tuple(out[0][:3])


@pytest.mark.parametrize("call, expected", [
    ({}, (64, 16, 1)),
    ({"params": {"BLOCK_SIZE_X": 64}}, (256, 1024, 1)),  # run_kernel takes the names as they are, tune_kernel any spelling
    ({"params": {}}, (256, 1024, 1)),
    ({"problem_size": (1000, 3)}, (64, 16, 3)),
    ({"problem_size": "block_size_x * 5"}, (64, 5, 1)),
    ({"problem_size": lambda p: p["block_size_x"] * 6}, (64, 6, 1)),
    ({"problem_size": lambda p: (640, 4 if p["block_size_x"] > 32 else 2)}, (64, 10, 4)),
    ({"grid_div_x": lambda p: p["block_size_x"] / 2}, (64, 32, 1)),
    ({"grid_div_x": lambda p: 128 if p["block_size_x"] > 32 else 1}, (64, 8, 1)),
    ({"grid_div_x": ["block_size_x/2"]}, (64, 32, 1)),
    ({"grid_div_x": []}, (64, 1024, 1)),
    ({"params": {"a": 32}, "block_size_names": ["a"]}, (32, 32, 1)),
])
def test_grids_and_blocks_are_kernel_tuners(call, expected):
    assert blocks_of(**call) == expected


def test_other_spellings_of_the_blocks_names_count():
    source = "__kernel void f(__global int *y) { y[get_global_id(0)] = get_local_size(0) == BLOCK_SIZE_X ? 1 : 0; }"
    results, _ = kt.tune_kernel("f", source, 1024, [np.zeros(1024, np.int32)], {"BLOCK_SIZE_X": [32, 64]},
                                answer=[np.ones(1024)], **OPENCL)
    assert all("__error__" not in r for r in results)
    with pytest.warns(UserWarning, match="None of the tunable parameters"):
        kt.tune_kernel("f", FILL, 4096, [np.zeros_like(X)], {"other": [1]}, **OPENCL)


def test_a_function_may_write_the_source():
    def write(params):
        return f"__kernel void f(__global int *y) {{ y[get_global_id(0)] = {params['n'] * 10} + n; }}"

    for n in (1, 2):
        assert kt.run_kernel("f", write, 64, [np.zeros(64, np.int32)], {"n": n, "block_size_x": 32}, lang="OpenCL")[0][5] == 11 * n
    results, _ = kt.tune_kernel("f", write, 64, [np.zeros(64, np.int32)], {"n": [1, 2, 3], "block_size_x": [32]}, **OPENCL,
                                verify=lambda answer, out: out[0][0] in (11, 22, 33))
    assert len(results) == 3 and all(set(r) >= {"n", "block_size_x"} and "__error__" not in r for r in results)
    assert not any(name.startswith("ergotune_") for r in results for name in r)


def test_defines_are_the_users_own():
    source = "__kernel void f(__global int *y) { y[0] = A; y[1] = B; }"
    out = kt.run_kernel("f", source, 32, [np.zeros(32, np.int32)], {"block_size_x": 32}, lang="OpenCL",
                        defines={"A": 7, "B": lambda p: p["block_size_x"] + 1})
    assert list(out[0][:2]) == [7, 33]


# -- restrictions ----------------------------------------------------------------------------------------------------


def only_32(block_size_x):
    return block_size_x == 32


@pytest.mark.parametrize("restrictions", [
    only_32, [only_32], lambda p: p["block_size_x"] == 32, ["block_size_x == 32"], "block_size_x == 32",
    ["block_size_x & 32 != 0", "block_size_x ^ 1 == 33"], ["pow(block_size_x, 1) == 32 and sum((1, 2)) == 3"],
    ["block_size_x is not None", lambda block_size_x, tile: block_size_x * tile == 32]])
def test_restrictions_of_every_kind(restrictions):
    results, _ = fill({"block_size_x": [32, 64], "tile": [1]}, restrictions=restrictions)
    assert [r["block_size_x"] for r in results] == [32]


def test_constraint_objects():
    constraint = pytest.importorskip("constraint")
    results, _ = fill({"block_size_x": [32, 64], "tile": [1, 2]}, restrictions=[
        constraint.MaxProdConstraint(64), (constraint.InSetConstraint([32]), ["block_size_x"])])
    assert sorted((r["block_size_x"], r["tile"]) for r in results) == [(32, 1), (32, 2)]


# -- outputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [np.ones(4096), [1.0] * 4096, np.ones(4096, np.int32), np.ones((64, 64), np.float32)])
def test_answers_of_every_type_are_compared_by_value(answer):
    assert all("__error__" not in r for r in fill(answer=[answer])[0])
    with pytest.raises(RuntimeError, match="verification"):
        fill(answer=[np.asarray(answer) * 2])


def test_a_tolerance_of_0_is_0():
    source = "__kernel void f(__global float *y) { y[get_global_id(0)] = 1e-7f; }"

    def wrong(atol):
        try:
            kt.tune_kernel("f", source, 64, [np.zeros(64, np.float32)], {"block_size_x": [32]}, answer=[np.zeros(64)], atol=atol, **OPENCL)
        except RuntimeError:
            return True
        return False

    assert wrong(0) and not wrong(1e-6)


def test_verify_takes_atol_where_it_wants_it():
    assert all("__error__" not in r for r in fill(verify=lambda answer, output: output[0][0] == 1)[0])
    assert all("__error__" not in r for r in fill(atol=0.5, verify=lambda answer, output, atol: atol == 0.5)[0])


@pytest.mark.parametrize("array, kind, expression", [
    (np.array([1 + 2j, 3 + 4j], np.complex64), "float2", "(float2)(x[i].y, x[i].x)"),
    (np.array([True, False]), "uchar", "!x[i]"), (np.array([1, 2], ">f4"), "float", "x[i] + 1.0f")])
def test_complex_bool_and_big_endian_arrays(array, kind, expression):
    source = f"__kernel void f(__global {kind} *x) {{ int i = get_global_id(0); x[i] = {expression}; }}"
    out = kt.run_kernel("f", source, 2, [array], {"block_size_x": 1}, lang="OpenCL")[0]
    expected = {"c": array.imag + 1j * array.real if array.dtype.kind == "c" else None, "b": ~array if array.dtype == bool else None,
                "f": array + 1 if array.dtype.kind == "f" else None}[array.dtype.kind]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("argument, kind, expression", [
    (np.array([(3.0, 4)], [("scale", "f4"), ("n", "i4")])[0], "grid", "s.scale * s.n"),
    (np.frombuffer(np.array([3, 4], "f4").tobytes(), "V8")[0], "float2", "s.x * s.y"), (np.complex64(3 + 4j), "float2", "s.x * s.y")],
    ids=["fields", "bytes", "complex"])
def test_a_structure_is_passed_by_value(argument, kind, expression):
    source = f"typedef struct {{ float scale; int n; }} grid;\n__kernel void f(__global float *y, {kind} s, int last) {{ y[0] = {expression} + last; }}"
    results = kt.tune_kernel("f", source, 1, [np.zeros(1, np.float32), argument, np.int32(5)], {"block_size_x": [1, 2]},
                             answer=[np.array([17]), None, None], **OPENCL)[0]
    assert len(results) == 2 and all("__error__" not in row for row in results)


# -- observers -------------------------------------------------------------------------------------------------------


class Watch(BenchmarkObserver):
    def __init__(self):
        self.calls, self.registered = [], []

    def register_configuration(self, params):
        self.registered.append(dict(params))
        self.calls = []

    def before_start(self):
        self.calls.append("before")

    def after_start(self):
        self.calls.append("start")

    def after_finish(self):
        self.calls.append("finish")

    def get_results(self):
        return {"calls": list(self.calls), "device": self.dev.name, "nested": {"deep": [1, 2]}, "time": 5.0}


def test_an_observer_sees_single_launches_and_its_results_stay_what_they_are():
    watch = Watch()
    results, env = fill(observers=[watch])
    assert [list(p) for p in watch.registered] == [["block_size_x"]] * 2
    for row in results:
        assert row["calls"] == ["before", "start", "finish"] * 3
        assert row["device"] == env["device_name"] and row["nested"] == {"deep": [1, 2]} and row["time"] == 5.0


def test_observers_may_be_made_by_functions_and_see_outputs_and_a_prologue():
    class Error(OutputObserver):
        def process_output(self, answer, output):
            self.found = float(np.max(np.abs(answer[0] - output[0])))

        def get_results(self):
            return {"error": self.found}

    class First(PrologueObserver):
        launches = 0

        def before_start(self):
            self.launches += 1

        def after_finish(self):
            pass

        def get_results(self):
            return {"first": self.launches}

    def make(arguments):
        assert arguments["lang"] == "OpenCL" and arguments["device"] == 0
        return Error()

    results, _ = fill({"block_size_x": [32]}, observers=[make, First()], answer=[np.full(4096, 3.0)])
    assert results[0]["error"] == 2.0 and results[0]["first"] == 1


def test_what_an_observer_raises_arrives_as_it_is():
    with pytest.raises(NotImplementedError, match="OpenCL"):
        fill(observers=[RegisterObserver()])

    class Interrupted(Watch):
        def before_start(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(observers=[Interrupted()])


# -- the rest --------------------------------------------------------------------------------------------------------


def test_metrics_may_use_builtins_and_each_other_and_names_that_are_no_identifiers():
    results, _ = fill(metrics={"GFLOP/s": "max(1, 2) * 4096 / time", "half": lambda p: p["GFLOP/s"] / 2, "third": "GFLOP/s / 3"},
                      objective="GFLOP/s")
    for row in results:
        assert row["half"] == row["GFLOP/s"] / 2 and row["third"] == row["GFLOP/s"] / 3


def test_an_objective_that_nobody_measures_is_named():
    with pytest.raises(ValueError, match="nope"):
        fill(objective="nope")
    with pytest.raises(ValueError, match="nope.*not in the results"):
        fill(objective="nope", objective_higher_is_better=True)


def test_env_and_rows_have_what_scripts_read(capsys):
    results, env = fill(quiet=False, iterations=1)
    assert env["best_config"] is min(results, key=lambda r: r["time"])
    assert all(env[f"total_{kind}_time"] >= 0 for kind in ("framework", "strategy", "compile", "verification", "benchmark"))
    assert "overhead_time" in env and all("timestamp" in r and len(r["times"]) == 1 for r in results)
    assert "BEST PERFORMING CONFIGURATION" in capsys.readouterr().out


def test_verbose_says_why_a_configuration_was_skipped(capsys):
    kt.tune_kernel("f", "__kernel void f(__global float *y) { nonsense }", 64, [np.zeros(64, np.float32)], {"block_size_x": [32]},
                   verbose=True, **OPENCL)
    assert "skipping config 32 reason: compile_error" in capsys.readouterr().out


@pytest.mark.parametrize("call, words", [
    ({"texmem_args": {"t": X}}, "texmem_args"), ({"parallel": 4}, "parallel"), ({"lang": "Julia"}, "Julia"),
    ({"params": {"block_size_x": [1], "cuda_sm_percentage": [90]}}, "cuda_sm_percentage"),
    ({"smem_args": {"size": 4, "carveout": 1}}, "carveout")])
def test_what_is_not_supported_says_what_to_do(call, words):
    with pytest.raises(kt.NotSupported, match=words):
        fill(**call)
