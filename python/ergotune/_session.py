"""Tuning runs: the shared way in for :func:`ergotune.tune` and the Kernel Tuner interface."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _command, _core
from ._core import Problem
from ._results import Result

ProblemOrFile = Union[Problem, str, "os.PathLike[str]"]
#: function(evaluated, total, best, seconds_left, phase)
Progress = Callable[[int, int, Optional[float], Optional[float], str], None]
Row = Dict[str, Any]


def devices() -> List[Row]:
    """Every device that can be used here, best first: dicts with id, name, uuid, backend, properties."""
    return _core.devices()


def describe_device(device: str) -> Tuple[str, int, str]:
    """(id, max threads per block, name) of a device id; replayed and simulated ones have no limit."""
    if device.startswith(("replay:", "sim:")):
        return device, 0, device
    for info in _core.devices():
        if info["id"] == device or info["id"].startswith(device):
            return info["id"], info["properties"].get("device.max_threads_per_block", 0), info["name"]
    return device, 0, device


def tune(
    problem: ProblemOrFile, *, device: Optional[str] = None, strategy: Optional[str] = None,
    strategy_options: Optional[Mapping[str, _core.Value]] = None, objective: Optional[str] = None,
    budget: Union[int, str, None] = None, seconds: Optional[float] = None, seed: Optional[int] = None,
    precision: Optional[float] = None, time_limit: Optional[float] = None, jobs: Optional[int] = None,
    sensors: Optional[Sequence[str]] = None, controls: Optional[Sequence[str]] = None, take_over: bool = False,
    store: Union[str, "os.PathLike[str]", None] = None, resume: bool = True,
    verify: Optional[Callable[[Row, Row], bool]] = None, observers: Sequence[Any] = (),
    metrics: Optional[Mapping[str, Callable[[Row], float]]] = None, confirm: bool = True, early_stop: bool = False,
    in_process: bool = False, progress: Optional[Progress] = None, quiet: bool = True,
) -> Result:
    """Tunes a problem and returns a :class:`ergotune.Result`.

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        device: "cuda:0", "opencl", "host", "replay:FILE", "sim:NAME"; default the best that suits the problem.
        objective: "time", "energy", "max gflops", "energy subject to time <= 1.1 * best(time)", "pareto(time, energy)" ...
        budget: number of evaluations, or a text such as "10min"; seconds: wall time in s.
        precision: wanted relative half-width of the 95 % interval. time_limit: s per configuration.
        verify: function(actual, expected) of dicts of arrays by argument name; True when the outputs are right.
        observers: objects with the hooks of :class:`Observer`.
        metrics: dict of name to function(row) where row holds the parameters and quantities (SI units).
        controls: what sets clocks and limits ("nvml:0"); default the device's own, for problems with execution parameters.
        store: results database; default what the problem's file says, else nothing is kept. What it knows is not measured
            again, unless resume is False; it survives the death of this process.
        progress: function(evaluated, total, best, seconds_left, phase).

    What the problem file says under [tune] and [execution] holds as it does for the command. Callables (verify, observers)
    run in this process; without them kernels run in worker processes, so that a crash is one configuration's status. The
    GIL is released while tuning.
    """
    if not isinstance(problem, _core.Problem):
        problem = _core.load_problem(os.fspath(problem))
    settings = {
        "controls": controls, "take_over": take_over, "store": os.fspath(store) if store else None, "resume": resume,
        "device": device, "strategy": strategy, "strategy_options": strategy_options or {}, "objective": objective,
        "seconds": seconds, "seed": seed, "precision": precision, "time_limit": time_limit, "jobs": jobs, "sensors": sensors,
        "confirm": confirm, "early_stop": early_stop, "in_process": in_process, "quiet": quiet,
    }
    if isinstance(budget, int):
        settings["evaluations"] = budget
    elif budget:
        settings["budget"] = str(budget)
    raw = run_problem(problem, settings, verify=verify, observers=observers, metrics=_si_metrics(metrics) if metrics else None,
                      metric_names=list(metrics or ()), progress=progress, taken=_objective_check(objective))
    return Result(raw)


def _objective_check(objective: Optional[str]) -> Optional[Callable[[Row, Row], None]]:
    """Ends a run at its first result where the objective is a name that nobody measures."""
    name = re.fullmatch(r"(?:(?:max|min|maximi[sz]e|minimi[sz]e)\s+)?([A-Za-z_]\w*)", objective or "")
    if not name or name.group(1) in _core.quantities():
        return None

    def check(configuration: Row, measurement: Row) -> None:
        known = [*measurement["quantities"], *measurement["metrics"]]
        if measurement["status"] in ("ok", "not_converged") and name.group(1) not in known:
            raise _core.UserError(f'objective "{objective}": nobody measures {name.group(1)}; there are {", ".join(known)}')

    return check


def compare_plans(
    problem: ProblemOrFile, plans: str = "all", *, device: Optional[str] = None,
    store: Union[str, "os.PathLike[str]", None] = None, resume: bool = True, controls: Optional[Sequence[str]] = None,
    sensors: Optional[Sequence[str]] = None, seed: Optional[int] = None, budget: Union[int, str, None] = None,
    progress: Optional[Progress] = None,
) -> Row:
    """Tunes by plans (stages over code and clocks) and compares them, as ``ergotune tune --plan`` does.

    Args:
        plans: names with commas, or "all". The others are those of :func:`tune`.

    Returns:
        A dict: device, provenance, optimum_energy (J, None where nobody knows), and per plan its best configuration with
        its measurement, stages, what it evaluated, and the model's ridge and range (MHz) where one was fitted.
    """
    if not isinstance(problem, _core.Problem):
        problem = _core.load_problem(os.fspath(problem))
    settings = {
        "device": device, "store": os.fspath(store) if store else None, "resume": resume, "controls": controls,
        "sensors": sensors, "seed": seed, "worker_command": [str(_command.path()), "worker"],
    }
    if isinstance(budget, int):
        settings["evaluations"] = budget
    elif budget:
        settings["budget"] = str(budget)
    settings = {k: v for k, v in settings.items() if v is not None}
    return _core.run_plans(problem, settings, plans, progress)


def run_problem(
    problem: Problem, settings: Row, verify: Optional[Callable[..., bool]] = None, observers: Sequence[Any] = (),
    metrics: Optional[Callable[[Row, Row], Row]] = None, metric_names: Sequence[str] = (),
    progress: Optional[Progress] = None, taken: Optional[Callable[[Row, Row], None]] = None,
) -> Row:
    """Runs a tuning session on plain settings; gives the native result as a dict."""
    settings = {k: v for k, v in settings.items() if v is not None}
    settings["worker_command"] = [str(_command.path()), "worker"]
    settings["metric_names"] = list(metric_names)
    if progress is None and not settings.get("quiet", True):
        progress = _line_progress()
    raw = _core.tune(problem, settings, verify, list(observers), metrics, progress, taken)
    if raw["interrupted"] and not raw["configurations"]:
        raise KeyboardInterrupt
    return raw


def _si_metrics(metrics: Mapping[str, Callable[[Row], float]]) -> Callable[[Row, Row], Row]:
    def evaluate(configuration: Row, measurement: Row) -> Row:
        row = dict(configuration)
        row.update({name: q["value"] for name, q in measurement["quantities"].items()})
        row.update(measurement["metrics"])
        values = {}
        for name, function in metrics.items():
            values[name] = row[name] = function(row)
        return values

    return evaluate


def _line_progress() -> Progress:
    """One line that is rewritten in terminals and notebooks, at most ten times a second."""
    started = last = time.monotonic()

    def show(evaluated: int, total: int, best: Optional[float], seconds_left: Optional[float], phase: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 0.1 and evaluated != total:
            return
        last = now
        left = f", {seconds_left:.0f} s left" if seconds_left is not None else ""
        best_text = f", best {best:.6g}" if best is not None else ""
        rate = evaluated / max(now - started, 1e-9)
        sys.stderr.write(f"\r{evaluated}/{total} configurations, {rate:.1f}/s{best_text}{left} {phase}   ")
        if evaluated == total:
            sys.stderr.write("\n")
        sys.stderr.flush()

    return show
