"""Kernel Tuner's helpers that scripts use: error objects, best configurations, metrics, caches."""

import json
import math
import re
import sys
import time
from datetime import timedelta

import numpy as np

from ._absent import absent
from ._cache import close_cache, read_cache, store_cache  # noqa: F401
from ._rows import (  # noqa: F401
    CompilationFailedConfig,
    ErrorConfig,
    InvalidConfig,
    NpEncoder,
    RuntimeFailedConfig,
    SkippableFailure,
    StopCriterionReached,
    check_result_type,
)

default_block_size_names = ["block_size_x", "block_size_y", "block_size_z"]

#: Objectives whose direction is known; True: higher is better.
objective_default_map = {
    "time": False, "energy": False, "fitness": True, "cost": False, "loss": False,
    "GFLOP/s": True, "TFLOP/s": True, "GB/s": True, "TB/s": True,
    "GFLOPS/W": True, "TFLOPS/W": True, "GFLOP/J": True, "TFLOP/J": True,
}

#: What expressions of restrictions, metrics, sizes and divisors may call besides Python's builtins.
_NAMES = {"ceil": math.ceil, "floor": math.floor, "np": np, "numpy": np, "math": math}


def evaluate(expression, values):
    """A user's expression (Python, as in Kernel Tuner) with ``values`` by name."""
    return eval(replace_param_occurrences(expression, values), dict(_NAMES), dict(values))


def replace_param_occurrences(string, params):
    """The text with each name of ``params`` replaced by its value; names that are not identifiers (``GB/s``) too."""
    for name in sorted((n for n in params if not str(n).isidentifier()), key=len, reverse=True):
        string = string.replace(name, repr(params[name]))
    return string


def get_objective_defaults(objective, objective_higher_is_better):
    """``time`` where none is given, and the direction of the objectives that are known."""
    objective = objective or "time"
    if objective_higher_is_better is None:
        if not isinstance(objective, str):
            return objective, [get_objective_defaults(o, None)[1] for o in objective]
        if objective not in objective_default_map:
            raise ValueError(f"Please specify objective_higher_is_better for objective {objective}")
        objective_higher_is_better = objective_default_map[objective]
    return objective, objective_higher_is_better


def get_result_cost(result, objectives, objective_higher_is_better):
    """What a strategy minimises of a result row."""
    if "__error__" in result:
        return [sys.float_info.max] * len(objectives)
    return [-result[o] if up else result[o] for o, up in zip(objectives, objective_higher_is_better)]


def get_best_config(results, objective, objective_higher_is_better=False):
    """The best row; rows that failed come last."""
    def cost(row):
        value = row.get(objective)
        works = isinstance(value, (int, float)) and value == value and "__error__" not in row
        return (-value if objective_higher_is_better else value) if works else float("inf")
    return min(results, key=cost)


def get_pareto_results(results, objectives, objective_higher_is_better, mark_optima=True):
    """The rows that no other row dominates, in their order; each is marked with ``optimal``."""
    costs = np.array([get_result_cost(r, objectives, objective_higher_is_better) for r in results], dtype=float)
    front = []
    for row, cost in zip(results, costs):
        no_worse = np.all(costs <= cost, axis=1)
        better = np.any(costs < cost, axis=1)
        if not np.any(no_worse & better):
            front.append(row)
    if mark_optima:
        for row in front:
            row["optimal"] = True
    return front


def process_metrics(params, metrics):
    """Adds every metric to a row; each may use those before it."""
    if metrics is None:
        return params
    if not isinstance(metrics, dict):
        raise ValueError("metrics should be a dictionary to preserve order and support composability")
    for name, metric in metrics.items():
        if callable(metric):
            params[name] = metric(params)
        elif isinstance(metric, str):
            params[name] = evaluate(metric, params)
        else:
            raise ValueError("metric dicts values should be strings or callable")
    return params


#: What Kernel Tuner prints behind values.
UNITS = {"time": "ms"}


def get_config_string(params, keys=None, units=None):
    """``name=value`` with commas, as Kernel Tuner prints configurations."""

    def item(name, value):
        text = f"{value:.3f}" if isinstance(value, float) else str(value)
        unit = units.get(name, "") if isinstance(units, dict) and not isinstance(value, ErrorConfig) else ""
        return f"{name}={text}{unit}"

    keys = keys or params.keys()
    return ", ".join(item(name, value) for name, value in params.items() if name in keys)


def print_config_output(tune_params, params, quiet, metrics, units):
    """One line per configuration."""
    if not quiet:
        print(get_config_string(params, [*tune_params, "time", *(metrics or ())], units))


def get_instance_string(params):
    """The values joined with underscores."""
    return "_".join(str(value) for value in params.values())


def check_block_size_names(block_size_names):
    """Raises ValueError unless it is None or a list of up to three strings."""
    if block_size_names is None:
        return
    if not isinstance(block_size_names, list):
        raise ValueError("block_size_names should be a list of strings!", block_size_names, type(block_size_names))
    if len(block_size_names) > 3:
        raise ValueError("block_size_names should not contain more than 3 names!", block_size_names)
    if not all(isinstance(name, str) for name in block_size_names):
        raise ValueError("block_size_names should contain only strings!", block_size_names)


def detect_language(kernel_string):
    """The language of a source, by its keywords."""
    if "__global__" in kernel_string:
        return "CUDA"
    if "__kernel" in kernel_string:
        return "OpenCL"
    return "C"


def looks_like_a_filename(kernel_source):
    """Whether a text is rather a file's name than source."""
    text = str(kernel_source)
    return not any(c in text for c in "{}();\n") and (
        "." in text or re.fullmatch(r"[\w./\\-]+", text) is not None) and " " not in text.strip()


def read_file(filename):
    """A file's text."""
    with open(filename) as file:
        return file.read()


def check_restriction(restrict, params):
    """Whether a configuration meets a restriction: a text, a function, a Constraint object."""
    from ._restrictions import function_of

    return function_of(restrict, params)(params)


def check_restrictions(restrictions, params, verbose):
    """Whether a configuration meets all of them; ``verbose``: prints the one that it does not meet."""
    for restriction in [restrictions] if callable(restrictions) else restrictions:
        try:
            met = bool(check_restriction(restriction, params))
        except ZeroDivisionError:
            continue  # as in Kernel Tuner, it says nothing then
        if not met:
            if verbose:
                print(f"skipping config {get_instance_string(params)}, reason: config fails restriction {restriction}")
            return False
    return True


def copy_without_benchmark_timings(result):
    """The row with no time spent on it."""
    return {**result, "compile_time": 0, "verification_time": 0, "benchmark_time": 0}


class Options(dict):
    """A dict whose keys are attributes too."""

    def __getattr__(self, name):
        if name.startswith("_") or name not in self:
            raise AttributeError(name)
        return self[name]

    def __deepcopy__(self, _):
        return self


class Timer:
    """Wall-clock time in s since it was made or reset."""

    def __init__(self):
        self.reset()

    def reset(self):
        self._start = time.perf_counter()

    def get(self):
        return time.perf_counter() - self._start

    def get_and_reset(self):
        elapsed = self.get()
        self.reset()
        return elapsed


class TuningBudget:
    """How many configurations and how many seconds a search may take; None means no bound."""

    def __init__(self, time_limit=None, max_fevals=None):
        if time_limit is not None and not isinstance(time_limit, timedelta):
            time_limit = timedelta(seconds=float(time_limit))
        if max_fevals is not None and max_fevals <= 0:
            raise ValueError("max_fevals must be greater than zero")
        if time_limit is not None and time_limit <= timedelta(0):
            raise ValueError("time_limit must be greater than zero")
        self.timer = Timer()
        self.time_limit, self.max_fevals = time_limit, max_fevals
        self.time_spent_extra, self.num_fevals = timedelta(0), 0

    def add_evaluations(self, n=1):
        self.num_fevals += n

    def add_time(self, seconds=0, milliseconds=0):
        self.time_spent_extra += timedelta(seconds=float(seconds), milliseconds=float(milliseconds))

    def get_time_spent(self):
        return timedelta(seconds=self.timer.get()) + self.time_spent_extra

    def get_time_remaining(self):
        return timedelta.max if self.time_limit is None else max(self.time_limit - self.get_time_spent(), timedelta(0))

    def get_evaluations_spent(self):
        return self.num_fevals

    def get_evaluations_remaining(self):
        return float("inf") if self.max_fevals is None else max(self.max_fevals - self.num_fevals, 0)

    def is_done(self):
        return self.get_evaluations_remaining() <= 0 or self.get_time_remaining() <= timedelta(0)

    def raise_exception_if_done(self):
        """Raises StopCriterionReached once it is spent."""
        if self.get_evaluations_remaining() <= 0:
            raise StopCriterionReached(f"max_fevals ({self.max_fevals}) reached")
        if self.get_time_remaining() <= timedelta(0):
            raise StopCriterionReached("time limit exceeded")

    def get_fraction_consumed(self):
        fractions = [0.0]
        if self.time_limit is not None:
            fractions.append(self.get_time_spent() / self.time_limit)
        if self.max_fevals is not None:
            fractions.append(self.num_fevals / self.max_fevals)
        return min(1.0, max(fractions))


_OWN = "internal API, not provided; "
_MEANS = {
    "ergotune checks arguments when it binds them": (
        "check_argument_list", "check_argument_type", "check_individual_arguments", "check_tune_params_list",
        "check_block_size_params_names_list", "TorchPlaceHolder"),
    "ergotune.Problem.restrict takes expressions and functions, ergotune.SearchSpace what remains": (
        "parse_restrictions", "compile_restrictions", "convert_constraint_restriction",
        "get_all_lambda_asts", "ConstraintLambdaTransformer", "unparse_constraint_lambda", "convert_constraint_lambdas",
        "infer_restrictions_from_cache", "normalize_verify_function"),
    "tune_kernel(cache=...) and tune_cache read and continue a cache": (
        "process_cache", "correct_open_cache", "dump_cache", "check_matching_problem_size", "infer_args_from_cache"),
    "parameters reach the source as macros": ("get_kernel_string", "prepare_kernel_string"),
    "tune_kernel and run_kernel determine block, grid and shared memory": (
        "get_problem_size", "get_thread_block_dimensions", "get_grid_dimensions", "setup_block_and_grid", "get_smem_args",
        "check_thread_block_dimensions", "config_valid", "append_default_block_size_names"),
    "Python's tempfile, pathlib and range do this": ("get_temp_filename", "delete_temp_file", "write_file", "get_interval"),
    "the results of tune_kernel hold these times": ("get_total_timings",),
    "use print_config_output": ("print_config",),
    "Julia is not tuned": ("possible_julia_vector_to_list", "is_julia_array", "julia_list_of_pairs_to_dict"),
}
__getattr__ = absent(__name__, {name: _OWN + instead for instead, names in _MEANS.items() for name in names})
