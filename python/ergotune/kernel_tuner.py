"""Kernel Tuner's interface on ergotune: change ``import kernel_tuner`` to ``import ergotune.kernel_tuner as kernel_tuner``.

Signatures, argument meanings and result dictionaries are Kernel Tuner's (times in ms, at this border only). What is not
supported raises :class:`NotSupported`, naming the argument and what to use instead.
"""

import json
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

from . import _core
from ._session import describe_device, run_problem
from .observers import Observer as _Observer

__all__ = ["tune_kernel", "run_kernel", "store_results", "BenchmarkObserver", "NotSupported"]

_DEFAULT_BLOCK_SIZE_NAMES = ("block_size_x", "block_size_y", "block_size_z")

# Kernel Tuner's strategy names that have another name here
_STRATEGIES = {
    "brute_force": "brute_force",
    "random_sample": "random",
    "mls": "multi_start_local_search",
    "greedy_mls": "multi_start_local_search",
    "ordered_greedy_mls": "multi_start_local_search",
    "greedy_ils": "iterated_local_search",
    "genetic_algorithm": "genetic",
    "diff_evo": "differential_evolution",
    "pso": "particle_swarm",
    "firefly_algorithm": "firefly",
    "basinhopping": "basin_hopping",
    "bayes_opt": "bayesian",
    "bayes_opt_GPyTorch": "bayesian",
    "adaptive_tabu_greywolf": "grey_wolf",
    "hybrid_vndx": "variable_neighbourhood",
    "minimize": "auto",
}

_LANGUAGES = {"CUDA": "cuda", "CUPY": "cuda", "NVCUDA": "cuda", "OPENCL": "opencl", "C": "c++", "FORTRAN": "fortran", "HIP": "hip"}


class NotSupported(NotImplementedError):
    """An argument of Kernel Tuner's that ergotune does not take."""


class BenchmarkObserver(_Observer):
    """Kernel Tuner's base class for observers: the same hooks, get_results() gives a dict."""

    def register_device(self, dev):
        """Called once with an object that has ``name`` and ``max_threads``."""
        self.dev = dev


class _Device:
    def __init__(self, name, max_threads):
        self.name = name
        self.max_threads = max_threads


def tune_kernel(
    kernel_name, kernel_source, problem_size, arguments, tune_params,
    grid_div_x=None, grid_div_y=None, grid_div_z=None, restrictions=None, answer=None, atol=1e-6, verify=None,
    verbose=False, lang=None, device=0, platform=0, smem_args=None, cmem_args=None, texmem_args=None, compiler=None,
    compiler_options=None, defines=None, log=None, iterations=7, block_size_names=None, quiet=False, strategy=None,
    strategy_options=None, cache=None, metrics=None, simulation_mode=False, parallel=None, observers=None,
    objective=None, objective_higher_is_better=None, objectives=None, seed=None,
):
    """Tunes a kernel; returns ``(results, env)`` as Kernel Tuner does.

    ``results`` is a list of dicts with the parameters, ``time`` and ``times`` in ms, observers' quantities and metrics;
    a configuration that failed has Kernel Tuner's error name as its time.
    """
    _refuse(compiler=compiler, texmem_args=texmem_args, cmem_args=cmem_args, log=log)
    options = dict(strategy_options or {})
    problem = _make_problem(
        kernel_name, kernel_source, problem_size, arguments, tune_params, (grid_div_x, grid_div_y, grid_div_z), lang,
        smem_args, compiler_options, defines, block_size_names)
    _add_restrictions(problem, restrictions)
    text, higher = _objective_text(objective, objective_higher_is_better, objectives, metrics)
    scratch = tempfile.TemporaryDirectory(prefix="ergotune-kt-")
    callback = _set_verification(problem, arguments, answer, atol, verify, scratch.name)
    metric_functions = _metric_functions(metrics)
    settings = {
        "device": _device_id(problem, lang, kernel_source, device, platform, simulation_mode, cache),
        "strategy": _STRATEGIES.get(strategy or "brute_force", strategy or "brute_force"),
        "seed": 1 if seed is None else int(seed),
        "quiet": bool(quiet),
        "confirm": False,
        "iterations": int(iterations),
        "max_threads_restriction": list(block_size_names or _DEFAULT_BLOCK_SIZE_NAMES),
    }
    if "max_fevals" in options:
        settings["evaluations"] = int(options.pop("max_fevals"))
    if "time_limit" in options:
        settings["seconds"] = float(options.pop("time_limit"))
    if options:
        warnings.warn("ergotune's strategies have options of their own; ignored: " + ", ".join(sorted(options)), stacklevel=2)
    listed = [o for o in (observers or [])]
    _, max_threads, name = describe_device(settings["device"])
    for observer in listed:
        if hasattr(observer, "register_device"):
            observer.register_device(_Device(name, max_threads))

    keys = [text] if isinstance(text, str) else list(text)
    ups = [higher] if isinstance(text, str) else list(text.values())

    def session_metrics(configuration, measurement):
        """What the strategy minimises, under names that any objective's text can use (a metric may be "GFLOP/s")."""
        row = to_row(configuration, measurement)
        row.update(metric_functions(row))
        return {f"objective_{i}": -row[key] if up else row[key] for i, (key, up) in enumerate(zip(keys, ups))}

    names = [f"objective_{i}" for i in range(len(keys))]
    settings["objective"] = names[0] if len(names) == 1 else f"pareto({', '.join(names)})"
    raw = run_problem(problem, settings, verify=callback, observers=listed, metrics=session_metrics, metric_names=names)
    results = [_to_result(c, m, metric_functions) for c, m in zip(raw["configurations"], raw["measurements"])]
    env = {"device_name": raw["device"], "kernel_name": kernel_name, "tuner": "ergotune", **raw.get("environment", {})}
    if cache and not simulation_mode:
        _write_cache(cache, raw["device"], kernel_name, problem_size, tune_params, results, text)
    if not quiet:
        _print_best(results, tune_params, text, higher)
    scratch.cleanup()
    return results, env


def run_kernel(
    kernel_name, kernel_source, problem_size, arguments, params, grid_div_x=None, grid_div_y=None, grid_div_z=None,
    lang=None, device=0, platform=0, smem_args=None, cmem_args=None, texmem_args=None, compiler=None,
    compiler_options=None, defines=None, block_size_names=None, quiet=False, log=None,
):
    """Runs one configuration once and returns the arguments as the kernel left them."""
    _refuse(compiler=compiler, texmem_args=texmem_args, cmem_args=cmem_args, log=log)
    problem = _make_problem(
        kernel_name, kernel_source, problem_size, arguments, {k: [v] for k, v in params.items()},
        (grid_div_x, grid_div_y, grid_div_z), lang, smem_args, compiler_options, defines, block_size_names)
    outputs = {}

    def take(actual, expected):
        outputs.update({name: array.copy() for name, array in actual.items()})
        return True

    settings = {"device": _device_id(problem, lang, kernel_source, device, platform, False, None),
                "strategy": "brute_force", "quiet": True, "confirm": False, "iterations": 1, "objective": "time"}
    raw = run_problem(problem, settings, verify=take)
    measurement = raw["measurements"][0]
    if measurement["status"] not in ("ok", "not_converged"):
        raise RuntimeError(f"{kernel_name} failed: {measurement['status']}: {measurement['message']}")
    return [outputs[f"arg{i}"].reshape(a.shape) if isinstance(a, np.ndarray) and a.ndim else a for i, a in enumerate(arguments)]


def store_results(results_filename, kernel_name, kernel_string, tune_params, problem_size, results, env, top=3,
                  objective=None, objective_higher_is_better=None):
    """Adds the best configurations to a JSON file, by device and problem size, in Kernel Tuner's format."""
    objective = objective or "time"
    higher = bool(objective_higher_is_better)
    valid = [r for r in results if isinstance(r.get(objective), (int, float))]
    valid.sort(key=lambda r: r[objective], reverse=higher)
    count = max(1, round(len(results) * top)) if 0 < top < 1 else int(top)
    size = problem_size if isinstance(problem_size, str) else "x".join(str(int(n)) for n in np.atleast_1d(problem_size))
    keep = list(tune_params.keys()) + [objective]
    rows = [{**{k: _plain(r[k]) for k in keep if k in r}, "device_name": env.get("device_name", "unknown").replace(" ", "_"),
             "problem_size": size, "tunable_parameters": ",".join(tune_params)} for r in valid[:count]]
    path = Path(results_filename)
    path = path if path.suffix == ".json" else path.with_name(path.name + ".json")
    document = {"version_number": "1.0", "tunable_parameters": {}, "kernel_name": kernel_name, "objective": objective, "data": []}
    if path.exists():
        document = json.loads(path.read_text())
        if document.get("kernel_name") != kernel_name:
            raise ValueError(f"{path} holds results of {document.get('kernel_name')}, not {kernel_name}")
    device = env.get("device_name", "unknown").replace(" ", "_")
    document["data"] = [d for d in document["data"] if (d["device_name"], d["problem_size"]) != (device, size)] + rows
    document["kernel_string"] = kernel_string if isinstance(kernel_string, str) else ""
    path.write_text(json.dumps(document, indent=1))


# -- making a problem ------------------------------------------------------------------------------------------------


def _refuse(**arguments):
    advice = {
        "compiler": "set CC or CXX in the environment",
        "texmem_args": "texture memory has no place in ergotune; pass a buffer",
        "cmem_args": "pass the array as an ordinary (constant) buffer argument",
        "log": "use Python's logging around the call",
    }
    for name, value in arguments.items():
        if value:
            raise NotSupported(f"ergotune.kernel_tuner does not support {name}: {advice[name]}")


def _read_source(kernel_source):
    if isinstance(kernel_source, (list, tuple)):
        if len(kernel_source) != 1:
            raise NotSupported("ergotune.kernel_tuner takes one source file: use #include for the others")
        kernel_source = kernel_source[0]
    if callable(kernel_source):
        raise NotSupported("ergotune.kernel_tuner does not support kernel_source as a function: parameters reach the "
                           "source as macros, so let the preprocessor choose")
    text = str(kernel_source)
    if "\n" not in text and Path(text).is_file():
        return Path(text).read_text(), text
    return text, ""


def _language(lang, text):
    if lang:
        try:
            return _LANGUAGES[str(lang).upper()]
        except KeyError:
            raise NotSupported(f"ergotune.kernel_tuner does not know lang={lang!r}; it takes {', '.join(_LANGUAGES)}") from None
    if "__kernel" in text:
        return "opencl"
    return "cuda" if "__global__" in text else "c++"


def _make_problem(kernel_name, kernel_source, problem_size, arguments, tune_params, grid_div, lang, smem_args,
                  compiler_options, defines, block_size_names):
    text, file = _read_source(kernel_source)
    language = _language(lang, text)
    names = list(block_size_names or [])
    names += list(_DEFAULT_BLOCK_SIZE_NAMES[len(names):])
    problem = _core.Problem(kernel_name)
    problem.set_source(language, text, kernel_name, file)
    for i, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray) and argument.ndim:
            problem.add_buffer(f"arg{i}", argument, "read_write")
        else:
            scalar = np.asarray(argument)
            problem.add_scalar(f"arg{i}", scalar.item(), scalar.dtype.name)
    for name, values in tune_params.items():
        problem.add_parameter(name, [_plain(v) for v in values])
    block, grid = _geometry(problem_size, tune_params, grid_div, names)
    shared = (smem_args or {}).get("size", 0)
    if callable(shared):
        raise NotSupported("ergotune.kernel_tuner does not support a function as smem_args['size']: write it as an expression")
    problem.set_launch(grid=grid, block=block, shared_memory_bytes=str(shared))
    options = list(compiler_options or [])
    if defines is None:
        for axis, expression in zip("xyz", grid):
            options.append(f"-Dgrid_size_{axis}={{{{int({expression})}}}}")
        for name, default in zip(names, block):
            if name not in tune_params:
                options.append(f"-D{name}={{{{{default}}}}}")
        options.append("-Dkernel_tuner=1")
    else:
        for name, value in defines.items():
            if callable(value):
                raise NotSupported(f"ergotune.kernel_tuner does not support functions in defines ({name}): write an expression")
            options.append(f"-D{name}={value}")
    problem.add_options(options, language)
    return problem


def _geometry(problem_size, tune_params, grid_div, names):
    if callable(problem_size):
        raise NotSupported("ergotune.kernel_tuner does not support problem_size as a function: write it as an expression")
    sizes = [problem_size] if isinstance(problem_size, (str, int, np.integer)) else list(problem_size)
    sizes = [str(s) for s in sizes] + ["1"] * (3 - len(sizes))
    defaults = ("256", "1", "1")
    block = [name if name in tune_params else default for name, default in zip(names, defaults)]
    grid = []
    for size, divisors, name in zip(sizes, grid_div, names):
        divisor = _divisor(divisors, name if name in tune_params else "1")
        grid.append(f"({size} + {divisor} - 1)//({divisor})" if divisor != "1" else size)
    return block, grid


def _divisor(divisors, default):
    if divisors is None:
        return default
    if callable(divisors):
        raise NotSupported("ergotune.kernel_tuner does not support functions as grid_div_*: write an expression")
    if isinstance(divisors, (str, int)):
        return f"({divisors})"
    parts = [_divisor(d, "1") for d in divisors]
    return "(" + "*".join(parts) + ")" if parts else "1"


def _add_restrictions(problem, restrictions):
    if restrictions is None:
        return
    if callable(restrictions) or isinstance(restrictions, str):
        restrictions = [restrictions]
    for restriction in restrictions:
        if isinstance(restriction, str):
            problem.restrict(restriction)
        elif callable(restriction):
            problem.restrict(_restriction_function(restriction))
        else:
            raise NotSupported(f"ergotune.kernel_tuner does not support a restriction of type {type(restriction).__name__}: "
                               "use a string or a function of the parameters")


def _restriction_function(function):
    """Kernel Tuner takes functions of a dict, and functions whose argument names are parameters."""
    import inspect

    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    if len(names) > 1:
        def call(values):
            return function(**{n: values[n] for n in names})
    else:
        def call(values):
            return function(values)
    call.__name__ = getattr(function, "__name__", "restriction")
    return call


# -- objective, verification, metrics --------------------------------------------------------------------------------

_HIGHER = re.compile(r"^(GFLOP|GFLOPs|GFLOPS|TFLOP|GB/s|TB/s|.*/[WJ]$)", re.I)


def _objective_text(objective, higher, objectives, metrics):
    if objectives:
        return {name: bool(up) for name, up in objectives.items()} if isinstance(objectives, dict) else {
            name: False for name in objectives}, False
    if isinstance(objective, (list, tuple)):
        ups = higher if isinstance(higher, (list, tuple)) else [False] * len(objective)
        return {name: bool(up) for name, up in zip(objective, ups)}, False
    objective = objective or "time"
    if higher is None:
        higher = objective != "time" and bool(_HIGHER.match(objective))
        if metrics and objective in metrics and not _HIGHER.match(objective):
            raise ValueError(f"please say objective_higher_is_better for objective {objective!r}")
    return objective, bool(higher)


def _set_verification(problem, arguments, answer, atol, verify, scratch):
    if verify is None and answer is None:
        problem.set_verification("none")
        return None
    if verify is None:
        files = {}
        for i, expected in enumerate(answer):
            if expected is None:
                continue
            file = Path(scratch) / f"arg{i}.bin"
            np.ascontiguousarray(expected).tofile(file)
            files[f"arg{i}"] = str(file)
        problem.set_verification("files", absolute_tolerance=float(atol or 1e-6), relative_tolerance=1e-5, files=files)
        return None
    problem.set_verification("none")

    def callback(actual, expected):
        host = [actual[f"arg{i}"].reshape(a.shape) if isinstance(a, np.ndarray) and a.ndim else a for i, a in enumerate(arguments)]
        return bool(verify(answer, host, atol=atol))

    return callback


def _metric_functions(metrics):
    """A function that adds every metric to a result row (a dict with parameters and quantities in Kernel Tuner's units)."""
    if not metrics:
        return lambda row: {}

    def evaluate(row):
        row = dict(row)
        values = {}
        for name, metric in metrics.items():
            if callable(metric):
                values[name] = metric(row)
            else:
                values[name] = eval(metric, {"__builtins__": {}}, row)  # the user's own expression, as in Kernel Tuner
            row[name] = values[name]
        return values

    return evaluate


_ERRORS = {"compile_error": "CompilationFailedConfig", "launch_error": "RuntimeFailedConfig", "runtime_error": "RuntimeFailedConfig",
           "timeout": "RuntimeFailedConfig", "wrong_result": "RuntimeFailedConfig", "unsupported": "InvalidConfig"}

# Kernel Tuner has the time of a configuration by itself, and no word for what is known of its code or its outputs
_NOT_OBSERVED = {"time"} | {name for name, q in _core.quantities().items() if q["producer"] in ("compiler", "verification")}


def to_row(configuration, measurement):
    """Parameters and quantities of one configuration in Kernel Tuner's names and units (ms)."""
    row = dict(configuration)
    quantities = measurement["quantities"]
    if measurement["status"] in ("ok", "not_converged"):
        row["time"] = quantities["time"]["value"] * 1e3
        row["times"] = [t * 1e3 for t in measurement["times"]] or [row["time"]]
        for name, quantity in quantities.items():
            if name not in _NOT_OBSERVED:
                row[name] = quantity["value"]
    else:
        row["time"] = _ERRORS.get(measurement["status"], "RuntimeFailedConfig")
        row["__error__"] = measurement["message"] or measurement["status"]
    row["compile_time"] = measurement["compile_seconds"] * 1e3
    row["verification_time"] = measurement["verify_seconds"] * 1e3
    row["benchmark_time"] = measurement["measure_seconds"] * 1e3
    row["strategy_time"] = 0.0
    row["framework_time"] = measurement["tuner_seconds"] * 1e3
    return row


def _to_result(configuration, measurement, metric_functions):
    row = to_row(configuration, measurement)
    if isinstance(row["time"], float):
        row.update(metric_functions(row))
    return row


def _device_id(problem, lang, kernel_source, device, platform, simulation_mode, cache):
    if simulation_mode:
        if not cache:
            raise ValueError("simulation_mode needs cache=FILE")
        return f"replay:{cache}"
    text, _ = _read_source(kernel_source)
    language = _language(lang, text)
    if language == "opencl":
        return f"opencl:{platform}:{device}"
    return f"cuda:{device}" if language == "cuda" else "host"


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _write_cache(cache, device, kernel_name, problem_size, tune_params, results, objective):
    path = Path(cache if str(cache).endswith(".json") else f"{cache}.json")
    document = {
        "device_name": device, "kernel_name": kernel_name,
        "problem_size": problem_size if isinstance(problem_size, (int, str)) else [_plain(s) for s in problem_size],
        "tune_params_keys": list(tune_params), "tune_params": {k: [_plain(v) for v in vs] for k, vs in tune_params.items()},
        "objective": objective if isinstance(objective, str) else list(objective),
        "cache": {",".join(str(r[k]) for k in tune_params): r for r in results},
    }
    path.write_text(json.dumps(document, default=_plain))


def _print_best(results, tune_params, objective, higher):
    key = objective if isinstance(objective, str) else next(iter(objective))
    valid = [r for r in results if isinstance(r.get(key), (int, float))]
    if not valid:
        print("no configuration worked")
        return
    best = (max if higher else min)(valid, key=lambda r: r[key])
    print(f"best of {len(results)}: " + ", ".join(f"{k}={best[k]}" for k in tune_params) + f", {key}={best[key]:.6g}")
