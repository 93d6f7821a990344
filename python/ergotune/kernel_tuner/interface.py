"""tune_kernel, run_kernel and tune_cache, as Kernel Tuner has them."""

import contextlib
import gc
import logging
import os
import platform as machine
import random
import tempfile
import time
import warnings
from datetime import datetime
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _core
from .._session import describe_device, run_problem
from ._absent import NotSupported, absent
from ._cache import Cache, read_cache
from ._driver import Driver, Plan, as_strategy, simulate
from ._rows import plain, row_of
from ._guests import guest_options
from ._observers import CLOCKS, DEVICES, QUANTITIES, Meter, Meters, ReturnedTime, Watch, instances
from ._problem import Builder, kernel_tuner_language
from ._restrictions import add_restrictions, as_list, function_of
from ._strategies import STRATEGIES, by_name, default_evaluations, resolve
from ._tunable import Current, is_tunable, selected
from ._verification import left_in_place, set_verification
from .util import (
    UNITS,
    Options,  # noqa: F401
    check_block_size_names,
    default_block_size_names,
    get_best_config,
    get_config_string,
    get_objective_defaults,
    get_pareto_results,
)

Row = Dict[str, Any]
Path = Union[str, "os.PathLike[str]"]
#: Text, file, list of files, or a function of the configuration that gives a text.
Source = Union[str, "os.PathLike[str]", Sequence[Any], Callable[..., str]]
#: Kernel Tuner's strategies by name, with the strategy that they are here.
strategy_map = {name: here for name, (here, _, _) in STRATEGIES.items()}

_absent = absent(__name__, {"entry_point": "the command reads T1 files: `ergotune tune problem.json`"})


def __getattr__(name):
    if name == "tune_kernel_T1":  # it is made of tune_kernel
        from ._t1 import tune_kernel_T1

        return tune_kernel_T1
    return _absent(name)


def tune_kernel(
    kernel_name: str, kernel_source: Source, problem_size: Any, arguments: Sequence[Any], tune_params: Dict[str, Sequence[Any]],
    grid_div_x: Any = None, grid_div_y: Any = None, grid_div_z: Any = None, restrictions: Any = None, answer: Any = None,
    atol: Optional[float] = 1e-6, verify: Optional[Callable[..., Any]] = None, verbose: bool = False, lang: Optional[str] = None,
    device: int = 0, platform: int = 0, smem_args: Optional[Dict[str, Any]] = None, cmem_args: Optional[Dict[str, Any]] = None,
    texmem_args: Optional[Dict[str, Any]] = None, compiler: Optional[str] = None, compiler_options: Optional[Sequence[str]] = None,
    defines: Optional[Dict[str, Any]] = None, log: Any = None, iterations: int = 7,
    block_size_names: Optional[Sequence[str]] = None, quiet: bool = False, strategy: Any = None,
    strategy_options: Optional[Dict[str, Any]] = None, cache: Optional[Path] = None, metrics: Optional[Dict[str, Any]] = None,
    simulation_mode: Optional[bool] = None, parallel: Any = None, observers: Optional[Sequence[Any]] = None,
    objective: Union[str, Sequence[str], None] = None, objective_higher_is_better: Union[bool, Sequence[bool], None] = None,
    objectives: Optional[Dict[str, bool]] = None, seed: Optional[int] = None,
) -> Tuple[List[Row], Row]:
    """Tunes a kernel; returns ``(results, env)`` as Kernel Tuner does.

    Args:
        kernel_source: text, file, list of files (the first is compiled, the others it includes), or function of the
            configuration. problem_size, grid_div_*: numbers, expressions, functions.
        restrictions: texts, functions (of a dict, or whose arguments are parameters), Constraint objects.
        answer, atol, verify: expected outputs, absolute tolerance, or a function of (answer, outputs[, atol]).
        strategy, strategy_options: Kernel Tuner's names and options, or ergotune's own (``ergotune.strategies()``).
        cache: JSON file that is continued; with simulation_mode it is all that is asked.
        objective(s), metrics, observers: as in Kernel Tuner (docs/python.md says what differs).

    Returns:
        A list of dicts: the parameters, ``time`` and ``times`` in ms, what observers found, metrics, and where the time went
        in ms; a configuration that failed has an error object as ``__error__``. And a dict: device_name, best_config, totals.

    Raises:
        NotSupported: for what ergotune does not take, with what to use instead.
        ValueError, TypeError: as Kernel Tuner does. ergotune.UserError: for what only shows on the device.
    """
    began = time.monotonic()
    if not simulation_mode:  # there nothing is compiled or run
        _refuse(texmem_args=texmem_args, parallel=parallel)
    _log(log, kernel_name)
    names, higher = _objectives(objective, objective_higher_is_better, objectives)
    _check_parameters(tune_params, simulation_mode)
    blocks = _block_names(block_size_names, tune_params)
    options = dict(strategy_options or {})
    strategy = by_name(strategy)
    here, mine = resolve(strategy, options)
    limit = options.get("time_limit")
    if limit is not None and not time.monotonic() - began <= limit:  # neither for 0 nor for nan
        raise RuntimeError(f"The startup time of the tuning process ({time.monotonic() - began} seconds) has exceeded the time "
                           f"limit ({limit} seconds). Please increase the time limit.")
    if seed is None:
        seed = random.getrandbits(31)
    plan = Plan(list(tune_params), names, higher, here, mine, int(seed),
                lambda size: default_evaluations(strategy, options, size), limit, options.get("x0"))
    call = {"kernel_name": kernel_name, "problem_size": problem_size, "tune_params": tune_params, "objective": names}
    printing = _Printing(quiet, verbose, tune_params, metrics)
    guest = guest_options(call, plan, restrictions, metrics, verbose, simulation_mode)
    if simulation_mode:
        with _no_collections():
            env, driver = _simulated(call, plan, restrictions, cache, metrics, printing, guest)
    else:
        builder = Builder(kernel_name, kernel_source, tune_params, lang, blocks, compiler, cmem_args)
        builder.checked = set() if answer is None or is_tunable(answer) else {i for i, a in enumerate(answer) if a is not None}
        builder.add_parameters()
        add_restrictions(builder.problem, restrictions, tune_params)
        grid_div = (grid_div_x, grid_div_y, grid_div_z)
        _fill(builder, problem_size, arguments, grid_div, smem_args, compiler_options, defines)
        if log:
            logging.debug("tune_kernel of %s: %s", kernel_name, builder.problem.to_t1())
        env, driver = _live(builder, call, plan, arguments, answer, atol, verify, lang, device, platform, compiler, iterations,
                            cache, metrics, observers, printing, guest)
    totals = driver.amortise(time.monotonic() - began, bool(simulation_mode))
    if simulation_mode:  # what the configurations took when they were measured
        env["simulated_time"] = totals["compile_time"] + totals["verification_time"] + totals["benchmark_time"]
    _tell_best(driver.results, names, higher, tune_params, metrics, quiet, env)
    env.update({f"total_{kind}": spent for kind, spent in totals.items()})
    env["overhead_time"] = 1e3 * (time.monotonic() - began) + env.get("simulated_time", 0) - sum(totals.values())
    return driver.results, env


def tune_cache(cache_path: Path, restrictions: Optional[List[Any]] = None, **kwargs: Any) -> Tuple[List[Row], Row]:
    """Simulates tuning from a cache alone: parameters, problem size and kernel are its own. See :func:`tune_kernel`."""
    data = read_cache(cache_path, open_cache=False)
    if restrictions is not None and not isinstance(restrictions, list):
        raise ValueError("The restrictions must be a list()")
    if isinstance(data["problem_size"], str):
        raise ValueError("Inferring kernel arguments from cache file that used callable for problem size is not possible")
    names = data["tune_params_keys"]
    valid = {tuple(row[n] for n in names) for row in data["cache"].values() if "__error__" not in row}

    def is_in_the_cache(*values):
        return values in valid

    size = data["problem_size"]
    known = {"kernel_name": data["kernel_name"], "kernel_source": "", "arguments": [], "tune_params": data["tune_params"],
             "problem_size": size if isinstance(size, int) else tuple(size)}
    known.update(kwargs)
    return tune_kernel(**known, cache=cache_path, restrictions=[is_in_the_cache, *(restrictions or [])], simulation_mode=True)


def run_kernel(
    kernel_name: str, kernel_source: Source, problem_size: Any, arguments: Sequence[Any], params: Dict[str, Any],
    grid_div_x: Any = None, grid_div_y: Any = None, grid_div_z: Any = None, lang: Optional[str] = None, device: int = 0,
    platform: int = 0, smem_args: Optional[Dict[str, Any]] = None, cmem_args: Optional[Dict[str, Any]] = None,
    texmem_args: Optional[Dict[str, Any]] = None, compiler: Optional[str] = None, compiler_options: Optional[Sequence[str]] = None,
    defines: Optional[Dict[str, Any]] = None, block_size_names: Optional[Sequence[str]] = None, quiet: bool = False, log: Any = None,
) -> List[Any]:
    """Runs one configuration once and returns the arguments as the kernel left them."""
    _refuse(texmem_args=texmem_args)
    _log(log, kernel_name)
    tune_params = {name: [value] for name, value in params.items()}
    arguments = selected(arguments, params)
    check_block_size_names(block_size_names)
    blocks = _with_defaults(block_size_names)
    builder = Builder(kernel_name, kernel_source, tune_params, lang, blocks, compiler, cmem_args)
    builder.add_parameters()
    _fill(builder, problem_size, arguments, (grid_div_x, grid_div_y, grid_div_z), smem_args, compiler_options, defines)
    builder.problem.set_verification("none")
    outputs = {}

    def take(actual, expected):
        outputs.update({name: np.array(array) for name, array in actual.items()})
        return False  # it has run; its speed is irrelevant

    settings = {"device": _device_id(builder.language, device, platform), "strategy": "brute_force", "quiet": True,
                "confirm": False, "in_process": True}
    with _compiler(builder.compiler, builder.language):
        raw = run_problem(builder.problem, settings, verify=take)
    if not outputs:
        measurement = raw["measurements"][0]
        raise RuntimeError(f"{kernel_name} failed: {measurement['status']}: {measurement['message']}")
    return left_in_place(outputs, arguments)


# -- arguments -------------------------------------------------------------------------------------------------------

_ADVICE = {
    "texmem_args": "texture memory has no place in ergotune; pass a buffer",
    "parallel": "ergotune.tune(problem, devices=[\"cuda:all\"]) measures on several GPUs, node_commands=[...] on several nodes",
}


def _refuse(**given):
    for name, value in given.items():
        if value:
            raise NotSupported(f"ergotune.kernel_tuner does not support {name}: {_ADVICE[name]}")


def _log(level, kernel_name):
    if level:
        logging.basicConfig(filename=kernel_name + datetime.now().strftime("%Y%m%d-%H:%M:%S") + ".log", level=level)


def _objectives(objective, higher, objectives):
    """(names, whether more is better)."""
    if objectives:
        if not isinstance(objectives, dict):
            raise ValueError("objectives should be a dict of (objective, higher_is_better) pairs")
        return list(objectives), [bool(up) for up in objectives.values()]
    objective, higher = get_objective_defaults(objective, higher)
    names = [objective] if isinstance(objective, str) else list(objective)
    ups = list(higher) if isinstance(higher, (list, tuple)) else [bool(higher)] * len(names)
    if len(names) != len(ups):
        raise ValueError(f"{len(names)} objectives, but {len(ups)} values of objective_higher_is_better")
    return names, ups


def _check_parameters(tune_params, simulation_mode):
    if not isinstance(tune_params, dict):
        raise ValueError("tune_params should be a dictionary of names to lists of values")
    if not tune_params:
        raise ValueError("tune_params has no parameters: there is nothing to tune")
    for name in tune_params:
        if name in ("grid_size_x", "grid_size_y", "grid_size_z", "time"):
            raise ValueError(f"Tune parameter {name} with value {tune_params[name]} has a forbidden name!")
        if not simulation_mode and name.startswith(("nvml_", "tegra_", "cuda_sm_percentage")) and name not in CLOCKS:
            raise NotSupported(f"ergotune.kernel_tuner does not set {name}: it sets {', '.join(CLOCKS)}, through NVMLObserver or "
                               "TegraObserver")


def _with_defaults(names):
    names = list(names or [])
    return names + default_block_size_names[len(names):]


def _block_names(given, tune_params):
    """Names of the block's parameters; other spellings of the defaults (BLOCK_SIZE_X) count, as in Kernel Tuner."""
    check_block_size_names(given)
    if given is not None:
        for name in given:
            if name not in tune_params:
                warnings.warn(f"Block size name {name} is not specified in the tunable parameters list!", UserWarning,
                              stacklevel=3)
        return _with_defaults(given)
    spelt = {name.lower(): name for name in tune_params if name.lower() in default_block_size_names}
    if not spelt:
        warnings.warn("None of the tunable parameters specify thread block dimensions!", UserWarning, stacklevel=3)
    return [spelt.get(name, name) for name in default_block_size_names]


def _fill(builder, problem_size, arguments, grid_div, smem_args, compiler_options, defines):
    builder.add_arguments(arguments)
    block, grid = builder.set_launch(problem_size, grid_div, smem_args)
    builder.add_options(compiler_options, defines, block, grid)
    builder.set_source(arguments)


def _device_id(language, device, platform):
    if language == "opencl":
        return f"opencl:{platform}:{device}"
    return f"{language}:{device}" if language in ("cuda", "hip") else "host"


@contextlib.contextmanager
def _compiler(compiler, language):
    """The compiler that a C or Fortran kernel is compiled with."""
    variable = {"cpp": "CXX", "fortran": "FC"}.get(language)
    if not compiler or variable is None:
        yield
        return
    before = os.environ.get(variable)
    os.environ[variable] = str(compiler)
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


class _Printing:
    """What is printed: rows unless quiet, why rows were skipped if verbose."""

    def __init__(self, quiet, verbose, tune_params, metrics):
        self.quiet, self.verbose, self.tune_params, self.metrics = quiet, verbose, tune_params, metrics

    def skipped(self, configuration, measurement):
        if self.verbose:
            print(f"skipping config {'_'.join(str(v) for v in configuration.values())} reason: {measurement['status']}: "
                  f"{measurement['message'].splitlines()[0] if measurement['message'] else ''}")


# -- the two ways ----------------------------------------------------------------------------------------------------


def _header(call, device_name):
    size = call["problem_size"]
    return {"device_name": device_name, "kernel_name": call["kernel_name"],
            "problem_size": "callable" if callable(size) else size,
            "tune_params_keys": list(call["tune_params"]),
            "tune_params": {name: [plain(v) for v in values] for name, values in call["tune_params"].items()},
            "objective": call["objective"] if len(call["objective"]) > 1 else call["objective"][0]}


@contextlib.contextmanager
def _no_collections():
    """Rows are many and hold no cycles: looking for some again and again would take half of a simulation's time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            if gc.get_freeze_count() == 0:  # among the old objects, where they are looked at seldom
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _simulated(call, plan, restrictions, cache_file, metrics, printing, guest):
    if not cache_file:
        raise ValueError("simulation_mode needs cache=FILE")
    cache = Cache.open(cache_file, _header(call, None), simulation=True)
    problem = _core.Problem(call["kernel_name"])
    for name, values in call["tune_params"].items():
        problem.add_parameter(name, [plain(v) for v in values])
    names = list(call["tune_params"])
    add_restrictions(problem, restrictions, names)
    space = _core.SearchSpace(problem)
    if printing.verbose:
        print(f"Searchspace has {len(space)} configurations after restrictions.")
    if len(space) == 0:
        raise ValueError("no configuration meets the restrictions")
    conditions = [function_of(r, names) for r in as_list(restrictions)]
    driver = Driver(plan, None, metrics, printing.tune_params, printing.quiet, guest)
    try:
        simulate(driver, space, cache, lambda values: all(c(values) for c in conditions))
    finally:
        driver.finish()
    return {"device_name": cache.device_name, "simulation": True}, driver


def _live(builder, call, plan, arguments, answer, atol, verify, lang, device, platform, compiler, iterations, cache_file,
          metrics, observers, printing, guest):
    device_id = _device_id(builder.language, device, platform)
    _, max_threads, device_name = describe_device(device_id)
    # Kernel Tuner's word for the host is often empty; in its caches it is what it is
    cached_name = machine.processor() if device_id == "host" else device_name
    env = {"device_name": device_name, "kernel_name": call["kernel_name"], "tuner": "ergotune", "iterations": iterations}
    if not printing.quiet:
        print(f"Using: {device_name}")
    listed = instances(observers, {"device": device, "platform": platform, "compiler": compiler,
                                   "lang": kernel_tuner_language(lang, builder.language)})
    meters = Meters([o for o in listed if isinstance(o, Meter)], [name for name in builder.tune_params if name in CLOCKS])
    meters.add_to(builder.problem)
    watch = _watch(builder, plan, [o for o in listed if not isinstance(o, Meter)], iterations, env, max_threads)
    cache = Cache.open(cache_file, _header(call, cached_name), simulation=False) if cache_file else None
    driver = Driver(plan, cache, metrics, printing.tune_params, printing.quiet, guest)
    current = Current(plan.names)
    scratch = contextlib.ExitStack()
    scratch.callback(meters.close)
    answers = scratch.enter_context(tempfile.TemporaryDirectory(prefix="ergotune-kt-"))
    callback = set_verification(builder.problem, arguments, answer, atol, verify, watch, answers, current, driver)
    seen_by = [watch] if watch else []
    if callback is not None and (is_tunable(answer) or any(is_tunable(a) for a in arguments)):
        seen_by.append(current)
    recorder = _Recorder(driver, watch, meters, iterations, printing)
    goals = [f"objective_{i}" for i in range(len(plan.objectives))]
    settings = {
        "device": device_id, "quiet": True, "confirm": False, "iterations": int(iterations), "seed": plan.seed,
        "strategy": as_strategy(driver), "seconds": plan.seconds, "in_process": watch is not None or callback is not None,
        "max_threads_restriction": [] if device_id == "host" else builder.block_size_names,
        "objective": f"min {goals[0]}" if len(goals) == 1 else f"pareto({', '.join('min ' + goal for goal in goals)})",
    }
    if meters:
        settings.update(meters.settings())
    try:
        with _compiler(builder.compiler, builder.language):
            run_problem(builder.problem, settings, verify=callback, observers=seen_by,
                        metrics=recorder.costs, metric_names=goals, taken=recorder.taken)
    except Exception:
        raise_first(driver, watch)
        raise
    finally:
        scratch.close()
        if cache:
            cache.close()
        driver.finish()
    raise_first(driver, watch)
    recorder.report_failures()
    return env, driver


def raise_first(driver, watch):
    """What an observer or the search raised, as it is."""
    for failure in (watch.failure if watch else None, driver.failure):
        if failure is not None:
            raise failure


def _watch(builder, plan, listed, iterations, env, max_threads):
    if builder.returned is not None:
        listed.insert(0, ReturnedTime(builder.returned))
    if not listed:
        return None
    seen = DEVICES[builder.language](env["device_name"], max_threads, env)
    for observer in listed:
        if hasattr(observer, "register_device"):
            observer.register_device(seen)
    return Watch(listed, plan.names, int(iterations))


class _Recorder:
    """Makes rows of measurements as they come, and costs for the session's own ranking."""

    def __init__(self, driver, watch, meters, iterations, printing):
        self.driver, self.watch, self.meters = driver, watch, meters
        self.iterations, self.printing = iterations, printing
        self._rows = {}
        self._failures = []  # of this run: (status, message)

    def report_failures(self):
        """Warns where some outputs are wrong or nothing works. Raises RuntimeError, as Kernel Tuner does at the first wrong outputs, where
        no configuration has right ones."""
        wrong = [message for status, message in self._failures if status == "wrong_result"]
        every = len(self.driver.results)
        if self.driver.results and all("__error__" in row for row in self.driver.results) and self._failures:
            if wrong:
                raise RuntimeError(f"the verification failed for {len(wrong)} of {every} configurations, and none works; the first: {wrong[0]}")
            status, message = self._failures[0]
            warnings.warn(f"none of the {every} configurations works; the first: {status}: {message}",
                          RuntimeWarning, stacklevel=4)
        elif wrong:
            warnings.warn(f"the verification failed for {len(wrong)} of {every} configurations; the first: {wrong[0]}",
                          RuntimeWarning, stacklevel=4)

    def _row(self, configuration, measurement):
        configuration = {name: configuration[name] for name in self.driver.plan.names}
        row = row_of(configuration, measurement, self.iterations, self.driver.plan.objectives)
        if "__error__" not in row:
            if self.meters:
                self.meters.take(row, measurement, QUANTITIES)
            if self.watch:
                row.update(self.watch.take(configuration, measurement))
        return row

    def costs(self, configuration, measurement):
        """What the session minimises; an objective that is missing ends the run with its name."""
        from .util import get_result_cost, process_metrics

        plan = self.driver.plan
        try:
            row = self._row(configuration, measurement)
            self._rows[tuple(configuration.values())] = row
            whole = process_metrics(dict(row), self.driver.metrics)
            costs = get_result_cost(whole, plan.objectives, plan.higher)
        except KeyError as missing:
            if missing.args and missing.args[0] in plan.objectives:
                missing = ValueError(f"objective {missing.args[0]!r} is not in the results; they have {', '.join(whole)}")
            self.driver.failure = self.driver.failure or missing
            raise
        except BaseException as failure:
            self.driver.failure = self.driver.failure or failure
            raise
        return {f"objective_{i}": float(cost) for i, cost in enumerate(costs)}

    def taken(self, configuration, measurement):
        """A result is final: it goes into the results, the cache and the strategy."""
        index = self.driver.space.index_of(configuration)
        row = self._rows.pop(tuple(configuration.values()), None)
        if row is None:
            row = self._row(configuration, measurement)
        if "__error__" in row:
            self._failures.append((measurement["status"], measurement["message"].partition("\n")[0]))
            self.printing.skipped({n: row[n] for n in self.driver.plan.names}, measurement)
        self.driver.take(index, row)


def _tell_best(results, names, higher, tune_params, metrics, quiet, env):
    if not results:
        if not quiet:
            print("no results to report")
        return
    keys = [*tune_params, *names, *(metrics or ())]
    quiet = quiet or all("__error__" in row for row in results)
    if len(names) == 1:
        env["best_config"] = get_best_config(results, names[0], higher[0])
        if not quiet:
            print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {names[0]}:")
            print(get_config_string(env["best_config"], keys, UNITS))
        return
    env["best_config"] = get_pareto_results(results, names, higher)
    if not quiet:
        print(f"\nBEST PERFORMING CONFIGURATIONS FOR OBJECTIVES: {names}:")
        for row in env["best_config"]:
            print(get_config_string(row, keys, UNITS))
