"""Kernel Tuner's own tests of its modules, with ours as its modules; and what those tests do not reach."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ergotune.kernel_tuner as kernel_tuner
from ergotune.kernel_tuner.accuracy import Tunable, TunablePrecision
from ergotune.kernel_tuner.searchspace import Searchspace
from ergotune.kernel_tuner.strategies.wrapper import OptAlg, OptAlgWrapper
from ergotune.kernel_tuner.utils.directives import Code, Cxx, Fortran, OpenMP, process_directives

FILES = ("test_searchspace.py", "test_common.py", "test_accuracy.py", "utils/test_directives.py")
#: One rests on the order in which python-constraint happens to enumerate; what it asks is asked below.
WITHOUT = "test_searchspace.py::test_order_param_configs"


def test_kernel_tuners_tests_of_its_modules_pass_with_ours(kernel_tuner_source):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "kernel_tuner_is_ours", "-p", "no:cacheprovider", "-o",
                          "addopts=", "--import-mode=importlib", f"--deselect=test/{WITHOUT}", *(f"test/{name}" for name in FILES)],
                         cwd=kernel_tuner_source, env=environment, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert " passed" in run.stdout and " skipped" not in run.stdout.splitlines()[-1]


C_SOURCE = """
extern "C" void scale(real* y, const real* x, int n) {
    for (int i = 0; i < n; i += step) for (int j = i; j < i + step && j < n; ++j) y[j] = 2 * x[j];
}"""


def tune(source, arguments, params, **more):
    more = {"quiet": True, "lang": "C", "iterations": 3, **more}
    with pytest.warns(UserWarning, match="thread block"):
        return kernel_tuner.tune_kernel("scale", source, 1, arguments, params, **more)


def precision_arguments(n=64):
    x = np.linspace(0, 1, n)
    dtypes = {"float": np.float32, "double": np.float64}
    return x, [TunablePrecision("real", np.zeros(n), dtypes), TunablePrecision("real", x, dtypes), np.int32(n)]


def test_a_tunable_argument_is_passed_where_it_is_chosen():
    x, arguments = precision_arguments()
    params = {"real": ["float", "double"], "step": [1, 4]}
    results, _ = tune(C_SOURCE, arguments, params, answer=[2 * x, None, None], atol=1e-6)
    assert len(results) == 4 and not any("__error__" in row for row in results)
    # seen by its own check: it would pass if nothing were compared
    with pytest.raises(RuntimeError, match="verification"):
        tune(C_SOURCE, arguments, params, answer=[3 * x, None, None], atol=1e-6)


def test_verify_sees_the_array_that_was_chosen():
    x, arguments = precision_arguments()
    seen = []

    def verify(answer, output, atol=None):
        seen.append(output[0].dtype)
        return np.allclose(output[0], 2 * x, atol=1e-6)

    results, _ = tune(C_SOURCE, arguments, {"real": ["float", "double"], "step": [1]}, answer=[None, None, None], verify=verify)
    assert not any("__error__" in row for row in results)
    assert set(seen) == {np.dtype(np.float32), np.dtype(np.float64)}


@pytest.mark.parametrize("key, options", [
    ("layout", {"plain": 1.0, "twice": 2.0}), ("3 if layout == 'twice' else 4", {3: 2.0, 4: 1.0}),
    (lambda p: p["layout"] == "twice", [1.0, 2.0])])
def test_a_tunable_is_chosen_by_name_expression_or_function(key, options):
    source = 'extern "C" void scale(float* y, const float* x) { for (int i = 0; i < 8; ++i) y[i] = x[i]; }'
    pick = options.items() if isinstance(options, dict) else enumerate(options)
    x = Tunable(key, {k: np.full(8, v, np.float32) for k, v in pick})
    answer = Tunable("layout", {"plain": [np.ones(8, np.float32), None], "twice": [np.full(8, 2, np.float32), None]})
    params = {"layout": ["plain", "twice"]}
    results, _ = tune(source, [np.zeros(8, np.float32), x], params, answer=answer)
    assert len(results) == 2 and not any("__error__" in row for row in results)
    left = kernel_tuner.run_kernel("scale", source, 1, [np.zeros(8, np.float32), x], {"layout": "twice"}, lang="C")
    np.testing.assert_array_equal(left[0], np.full(8, 2, np.float32))


def test_a_tunable_without_the_value_is_said():
    source = 'extern "C" void scale(float* y) { y[0] = 1; }'
    y = Tunable("layout", {"plain": np.zeros(8, np.float32)})
    with pytest.raises(KeyError, match="twice"):
        tune(source, [y], {"layout": ["plain", "twice"]})


class Downhill(OptAlg):
    """Walks to a random neighbour where that is better, and now and then anyway: around one there may be fewer than are wanted."""

    def __call__(self, func, searchspace):
        here = searchspace.get_random_sample(1)[0]
        best = func(here)
        while func.budget_spent_fraction < 1:
            there = random.choice(searchspace.get_neighbors(here, "Hamming"))
            cost = func(there)
            if cost < best or random.random() < 0.2:
                here, best = there, cost
        return here, best


WORK = 'extern "C" void scale(float* y) { for (int i = 0; i < 100 * a; ++i) y[i % 16] += b; }'
SPACE = {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4]}


def test_an_algorithm_of_ones_own_tunes_live_and_its_cache_is_simulated(tmp_path):
    strategy = OptAlgWrapper(Downhill())
    cache = tmp_path / "cache.json"
    results, _ = tune(WORK, [np.zeros(16, np.float32)], SPACE, strategy=strategy, strategy_options={"max_fevals": 7}, cache=cache)
    assert 7 == len({(row["a"], row["b"]) for row in results}) <= len(results)
    tune(WORK, [np.zeros(16, np.float32)], SPACE, cache=cache)
    again, env = tune(WORK, [np.zeros(16, np.float32)], SPACE, cache=cache, simulation_mode=True, strategy=strategy,
                      strategy_options={"max_fevals": 9})
    assert 9 == len({(row["a"], row["b"]) for row in again}) and env["best_config"] in again


def test_what_an_algorithm_raises_is_raised():
    class Broken(OptAlg):
        def __call__(self, func, searchspace):
            func(searchspace.list[0])
            raise ZeroDivisionError("its own fault")

    with pytest.raises(ZeroDivisionError, match="its own fault"):
        tune(WORK, [np.zeros(16, np.float32)], SPACE, strategy=OptAlgWrapper(Broken()))


def test_a_runner_gives_rows_and_none_after_the_budget():
    seen = []

    class Batches:
        def tune(self, searchspace, runner, tuning_options):
            seen.extend(runner.run(searchspace.list[:4] + searchspace.list[:1], tuning_options))
            seen.extend(runner.run(searchspace.list[4:8], tuning_options))

    results, _ = tune(WORK, [np.zeros(16, np.float32)], SPACE, strategy=Batches(), strategy_options={"max_fevals": 6})
    assert len(results) == 6
    assert [row is None for row in seen] == [False] * 7 + [True] * 2
    assert seen[4]["time"] == seen[0]["time"] and seen[4]["compile_time"] == 0


def test_configurations_are_ordered_by_the_parameters_that_differ(monkeypatch):
    monkeypatch.setattr("ergotune.kernel_tuner.searchspace.choice", lambda sequence: sequence[-1])
    space = Searchspace({"x": [1, 2], "y": [1, 2], "z": [1, 2]}, None, 1024)
    ordered = space.order_param_configs(space.list, [1, 2, 0], randomize_in_params=False)
    assert ordered[0] == (2, 2, 2)  # then those whose y differs, then z, then x
    assert [c[1] for c in ordered[1:5]] == [1] * 4 and [c[2] for c in ordered[5:7]] == [1, 1] and ordered[7] == (1, 2, 2)
    with pytest.raises(ValueError, match="index 0 is missing"):
        space.order_param_configs(space.list, [1, 2, 2])


def test_what_needs_other_packages_says_so():
    space = Searchspace({"x": [1, 2]}, None, 1024)
    with pytest.raises(kernel_tuner.NotSupported, match="torch"):
        space.get_tensorspace()


CXX = """
#define SIZE 1000
int main() {
#pragma tuner start add a(float*:SIZE) b(float*:SIZE) c(float*:SIZE) n(int:SIZE)
#pragma omp parallel for num_threads(threads)
for (int i = 0; i < n; ++i) c[i] = a[i] + b[i];
#pragma tuner stop
}
"""
FORTRAN = """
#define SIZE 1000
!$tuner start add a(float*:SIZE) b(float*:SIZE) c(float*:SIZE) n(int:SIZE)
!$omp parallel do num_threads(threads)
do i = 1, n
  c(i) = a(i) + b(i)
end do
!$tuner stop
""".replace("!$tuner start", "!$tuner initialize\ninteger :: i\n!$tuner stop\n!$tuner start", 1)


@pytest.mark.parametrize("language, source, lang", [(Cxx(), CXX, "C"), (Fortran(), FORTRAN, "fortran")])
def test_code_between_directives_is_tuned_on_a_hosts_compiler(language, source, lang):
    texts, arguments = process_directives(Code(OpenMP(), language), source)
    given = arguments["add"]
    answer = [None, None, given[0] + given[1], None]
    options = ["-fopenmp"] + (["-cpp"] if lang == "fortran" else [])
    with pytest.warns(UserWarning, match="thread block"):
        results, _ = kernel_tuner.tune_kernel("add", texts["add"], 0, given, {"threads": [1, 2]}, answer=answer, lang=lang,
                                              compiler_options=options, quiet=True, iterations=3)
    assert len(results) == 2 and all(row["time"] > 0 for row in results), results
