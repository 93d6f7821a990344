"""Tuning runs: the shared way in for :func:`ergotune.tune` and the Kernel Tuner interface."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import itertools
import os
import re
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, Container, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _command, _core
from ._core import Problem
from ._results import Result
from ._watch import in_notebook
from ._watch import watch as show_page

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from typing_extensions import Unpack

    from ._settings import AllSettings, Settings

ProblemOrFile = Union[Problem, str, "os.PathLike[str]"]
#: function(evaluated, total, best, seconds_left, phase); ``evaluated`` counts what the store knew, too
Progress = Callable[[int, int, Optional[float], Optional[float], str], None]
Row = Dict[str, Any]
Verify = Union[Callable[[Row, Row], bool], bool, None]


def devices() -> List[Row]:
    """Every device that can be used here, best first: dicts with id, name, uuid, backend, properties."""
    return _core.devices()


def describe_device(device: str) -> Tuple[str, int, str]:
    """(id, max threads per block, name) of a device id; replayed and simulated ones have no limit."""
    if device.startswith(("replay:", "sim:")):
        return device, 0, device
    info = _core.device(device)  # no other driver is opened: AMD's and PoCL's compilers may not meet in one process
    return info["id"], info["properties"].get("device.max_threads_per_block", 0), info["name"]


_SETTINGS = {row["name"]: row for row in _core.settings()}


def _plain_settings(given: Mapping[str, object], also: Any = ()) -> Row:
    """Keyword arguments as the core takes them; an unknown one is a TypeError that names the nearest."""
    for name in given:
        if name not in _SETTINGS:
            near = difflib.get_close_matches(name, [*_SETTINGS, *also], n=1)
            raise TypeError(f"there is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    plain = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in given.items() if value is not None}
    if isinstance(budget := plain.get("budget"), float) and budget.is_integer():
        plain["budget"] = int(budget)  # 1e3
    return plain


def _loaded(problem: ProblemOrFile, device: object = None) -> Problem:
    """The problem; of a recording's path where ``device`` replays one."""
    if isinstance(problem, _core.Problem):
        return problem
    if not isinstance(problem, (str, os.PathLike)):
        raise TypeError(f"a problem is an ergotune.Problem or the path of a problem file, not {type(problem).__name__}"
                        + "; ergotune.tune_callable(function, space) tunes a function of your own" * callable(problem))
    return _core.load_problem(os.fspath(problem), device if isinstance(device, str) else "")


def tune(
    problem: ProblemOrFile, *, seconds: Optional[float] = None,
    verify: Verify = None, observers: Sequence[Any] = (),
    metrics: Optional[Mapping[str, Union[str, Callable[[Row], float]]]] = None, resume: bool = True, take_over: bool = False,
    in_process: bool = False, progress: Optional[Progress] = None, quiet: Optional[bool] = None, devices: Sequence[str] = (),
    watch: bool = False, executor: Optional[Executor] = None, workers: Optional[int] = None, **settings: Unpack[Settings],
) -> Result:
    """Tunes a problem and returns a :class:`ergotune.Result`.

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        seconds: budget of wall time in s, beside ``budget``; waiting for another session on the device counts.
        verify: function(actual, expected) of dicts of arrays by argument name, those that are written, in the shape and order in
            memory that add_buffer was given; True when the outputs are right. False: outputs are not checked.
            Stored results of another function, by its source and what it closes over, are not used.
        observers: names, as ``--observe`` takes them ("host_time:passes=5"), and objects with the hooks of
            :class:`Observer`.
        metrics: by name an expression ("2 * n / time / 1e9"), or function(row) where row holds the parameters and quantities (SI units).
        resume: what the store knows is not measured again.
        take_over: sets clocks although another process seems to have locked them.
        progress: function(evaluated, total, best, seconds_left, phase); ``evaluated`` counts what the store knew, too.
        quiet: prints no progress and no notes; without it they are printed on a terminal and in a notebook.
        devices: several of one kind that share the work: ["cuda:0", "cuda:1"]; with node_commands= or nodes= those of each node.
        watch: shows the page on the session while it runs (:func:`ergotune.watch`); needs ``store``.
        executor: any ``concurrent.futures.Executor`` whose workers measure (:mod:`ergotune.engines`): processes, Dask, Ray, mpi4py,
            Parsl. ``device`` names the device of each worker.
        workers: how many of the executor's workers take part (default: all).
        settings: what a problem file may say under [tune], by the same names; they win over the file.

    What the problem file says under [tune] and [execution] holds as it does for the command. Callables (verify,
    observers) run in this process; without them kernels run in worker processes, so that a crash is one configuration's
    status. The GIL is released while tuning.

    Settings:
    """
    _refuse_plan(settings)
    problem = _loaded(problem, settings.get("device"))
    if not (progress is None or callable(progress)):
        raise TypeError(f"progress is a function, not {progress!r}")
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"metrics is a dict of names to expressions or functions, not {metrics!r}")
    if isinstance(observers, str):
        observers = [observers]
    if devices is not None and not isinstance(devices, (str, Sequence)):
        raise TypeError(f"devices is a list of names, not {devices!r}")
    if devices:
        if not isinstance(devices, str) and not all(isinstance(device, str) for device in devices):
            raise TypeError(f"devices is a list of names, not {devices!r}")
        if settings.get("device"):
            raise TypeError("device names one and devices several: give one of them")
        settings["device"] = devices if isinstance(devices, str) else ",".join(devices)
    plain = _plain_settings(settings, tune.__kwdefaults__)
    if not isinstance(plain.get("strategy", ""), str):
        raise TypeError("strategy is a name: ergotune.register_strategy(name, factory) gives one to a strategy of your own")
    if watch and not plain.get("store"):
        raise _core.UserError("watch=True shows what a store holds: give it store=\"results.db\"")
    page = show_page(plain["store"], wait=True) if watch else None
    callback = _verifier(verify, plain)
    plain["metric_expressions"] = {name: text for name, text in (metrics or {}).items() if isinstance(text, str)}
    functions = {name: function for name, function in (metrics or {}).items() if not isinstance(function, str)}
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"the metric {name} is an expression or a function, not {function!r}")
    plain.update(seconds=seconds, resume=resume, take_over=take_over, in_process=in_process, quiet=_is_quiet(quiet))
    if workers is not None and executor is None:
        raise TypeError("workers is a number of workers of an executor: give executor=, or devices= for devices of this machine")
    with contextlib.ExitStack() as nodes:
        if executor is not None:
            if plain.get("node_commands") or plain.get("nodes"):
                raise TypeError("executor and node_commands or nodes exclude each other: give one of them")
            from .engines import Workers

            plain["node_commands"] = nodes.enter_context(Workers(executor, workers))
        raw = run_problem(problem, plain, verify=callback, observers=observers, metrics=functions or None,
                          metric_names=list(functions), progress=progress,
                          taken=_objective_check(settings.get("objective"), functions))
    result = Result(raw)
    result.page = page
    return result


def _verifier(verify: Verify, plain: Row) -> Optional[Callable[[Row, Row], bool]]:
    """The function of ``verify=``; the settings get whether outputs are checked, or what the function depends on."""
    if isinstance(verify, bool):
        plain["verify"] = verify
    elif callable(verify):
        from ._callables.identity import fingerprint

        plain["verify_identity"] = fingerprint(verify)
        return verify
    elif verify is not None:
        raise TypeError(f"verify is a function, not {verify!r}")
    return None


def _notes_on_rows(raw: Row) -> List[str]:
    """What was left out of the values of configurations other than the best, whose warnings are notes anyway."""
    found = Counter(text for measurement in raw["measurements"] for text in measurement["warnings"]
                    if text.startswith(("the metric ", "a round is left out")) and text not in raw["notes"])
    return [f"{text} (of {count} of {len(raw['configurations'])} configurations)" for text, count in found.most_common(5)]


def _print_notes(notes: Iterable[str], quiet: bool) -> None:
    for note in () if quiet else notes:
        print(f"note: {note}", file=sys.stderr, flush=True)


def _refuse_plan(settings: Mapping[str, Any]) -> None:
    if settings.get("plan"):
        raise _core.UserError("plans are run, and compared, by ergotune.compare_plans(problem, plans)")


def _is_quiet(quiet: Optional[bool]) -> bool:
    return not (sys.stderr.isatty() or in_notebook()) if quiet is None else quiet


def _objective_check(objective: Optional[str], functions: Container[str]) -> Optional[Callable[[Row, Row], None]]:
    """Ends a run at its first result where the objective is an unknown quantity; functions that are metrics may have no value."""
    name = re.fullmatch(r"(?:(?:max|min|maximi[sz]e|minimi[sz]e)\s+)?([A-Za-z_]\w*)", objective or "")
    if not name or name.group(1) in _core.quantities() or name.group(1) in functions:
        return None

    def check(configuration: Row, measurement: Row) -> None:
        known = [*measurement["quantities"], *measurement["metrics"]]
        if measurement["status"] in ("ok", "not_converged") and name.group(1) not in known:
            raise _core.UserError(f'objective "{objective}": unknown quantity {name.group(1)}; there are {", ".join(known)}')

    return check


def compare_plans(
    problem: ProblemOrFile, plans: Optional[str] = None, *, resume: bool = True, progress: Optional[Progress] = None,
    **settings: Unpack[AllSettings],
) -> Row:
    """Tunes by plans (stages over code and clocks) and compares them, as ``ergotune tune --plan`` does.

    Args:
        plans: names with commas, or "all" (default: the problem's setting ``plan``, else all). The others are those of
            :func:`tune`.

    Returns:
        The document of ``ergotune tune --plan --json``: device, provenance, optimum_energy (J, None where unknown), and
        per plan its best configuration with its measurement, stages, how many configurations it asked for (``asked``:
        ``evaluated`` in this run, and ``known``), and the ``model`` (MHz) where one was fitted.
    """
    plain = _plain_settings(settings, compare_plans.__kwdefaults__)
    plain.update(resume=resume, worker_command=_command.worker())
    return _core.run_plans(_loaded(problem, plain.get("device")), plain, plans or "", _without_known(progress))


def tune_sizes(
    problem: ProblemOrFile, constants: Mapping[str, Sequence[Any]], *, leaves: int = 6, worst_case: bool = False,
    tree: Union[str, "os.PathLike[str]", None] = None, resume: bool = True, progress: Optional[Progress] = None,
    quiet: Optional[bool] = None, **settings: Unpack[AllSettings],
) -> Row:
    """Tunes a problem at several sizes, as ``ergotune tune --set SIZE=1024,2048`` does: each starts from what the others found, and
    every winner is measured at every size.

    Args:
        constants: by name the values of a constant of the problem: {"SIZE": [1024, 2048]}. Of several constants all combinations are
            tuned; names in a tuple have the same value: {("M", "N"): [1024, 2048]}.
        leaves: configurations that the tree chooses from at most.
        worst_case: over sizes, the least of the worst losses instead of the mean.
        tree: a file .hpp or .py for the tree that chooses a configuration by size.
        resume, progress, quiet, settings: those of :func:`tune`; ``store`` is needed.

    Returns:
        The document of ``ergotune tune --set ... --json``: ``sizes``, each with ``constants`` and its ``result``; ``one_for_all``, the
        configuration that loses least, and ``tree``, both with ``mean_loss`` and ``worst_loss``, or None.
    """
    if not isinstance(constants, Mapping) or not constants or any(isinstance(v, str) or not isinstance(v, Iterable) for v in constants.values()):
        raise TypeError(f"constants is a dict of names and their values, as in {{'SIZE': [1024, 2048]}}, not {constants!r}")
    plain = _plain_settings(settings, tune_sizes.__kwdefaults__)
    plain.update(resume=resume, worker_command=_command.worker())
    groups = [names if isinstance(names, tuple) else (names,) for names in constants]
    sizes = [{name: value for names, value in zip(groups, values) for name in names} for values in itertools.product(*constants.values())]
    loaded = _loaded(problem, plain.get("device"))
    with _shown_progress(loaded, plain, progress, _is_quiet(quiet)) as shown:
        return _core.tune_sizes(loaded, plain, sizes, leaves, worst_case, os.fspath(tree or ""), shown)


def _tell_settings() -> None:
    """tune()'s help lists the settings, and editors know their names."""
    lines = [f"        {name}: {row['help']}" + (f" ({row['default']})" if row["default"] else "") + "."
             for name, row in _SETTINGS.items() if name not in ("plan", "verify")]
    tune.__doc__ = (tune.__doc__ or "").rstrip() + "\n" + "\n".join(lines) + "\n"
    own = inspect.signature(tune)
    fixed = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in _SETTINGS if name not in own.parameters and name != "plan"]
    setattr(tune, "__signature__", own.replace(parameters=fixed + more))


_tell_settings()


def run_problem(
    problem: Problem, settings: Row, verify: Optional[Callable[..., bool]] = None, observers: Sequence[Any] = (),
    metrics: Union[Callable[[Row, Row], Row], Mapping[str, Callable[[Row], float]], None] = None, metric_names: Sequence[str] = (),
    progress: Optional[Progress] = None, taken: Optional[Callable[[Row, Row], None]] = None,
) -> Row:
    """Runs a tuning session on plain settings; gives the native result as a dict."""
    settings = {k: v for k, v in settings.items() if v is not None}
    alone = str(settings.get("device", "")).startswith(("sim:", "replay:"))  # these start no worker, unless on nodes
    settings["worker_command"] = [str(_command.path()), "worker"] if alone else _command.worker()
    from ._callables import workers

    if workers.importing_main:
        raise RuntimeError("a worker process imports this script, which begins to tune again: call tune() and tune_callable() below "
                           "if __name__ == \"__main__\":")
    settings["metric_names"] = list(metric_names)
    with _shown_progress(problem, settings, progress, settings.get("quiet", True)) as shown:
        raw = _core.tune(problem, settings, verify, list(observers), metrics, shown, taken)
    raw["notes"] += _notes_on_rows(raw)
    _print_notes(raw["notes"][raw.pop("printed"):], settings.get("quiet", True))
    if raw["interrupted"] and not raw["configurations"]:
        raise KeyboardInterrupt
    return raw


@contextlib.contextmanager
def _shown_progress(problem: Problem, settings: Row, progress: Optional[Progress], quiet: bool) -> Iterator[Optional[Callable[..., None]]]:
    """The caller's function, or a line of text unless quiet. It is also given how many configurations were known."""
    if progress is not None or quiet:
        yield _without_known(progress)
        return
    objective = str(settings.get("objective") or problem.objective)
    try:
        yield _line_progress(_core.unit_of(re.sub(r"^(max|min)\w* ", "", objective)))
    finally:
        sys.stderr.write("\n")


def _without_known(progress: Optional[Progress]) -> Optional[Callable[..., None]]:
    return progress and (lambda *given: progress(*given[:-1]))


def _line_progress(unit: str) -> Callable[..., None]:
    """One line that is rewritten in terminals and notebooks, at most ten times a second."""
    started = last = time.monotonic()

    def show(evaluated: int, total: int, best: Optional[float], seconds_left: Optional[float], phase: str, known: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < 0.1 and (phase or evaluated != total):
            return
        last = now
        left = f", {seconds_left:.0f} s left" if seconds_left is not None else ""
        best_text = f", best {best:.6g} {unit}".rstrip() if best is not None else ""
        known_text = f" ({known} known)" if known else ""
        rate = (evaluated - known) / max(now - started, 1e-9)
        rate_text = f", {rate:.1f}/s" if rate else ""
        sys.stderr.write(f"\r{evaluated}/{total} configurations{known_text}{rate_text}{best_text}{left} {phase}   ")
        sys.stderr.flush()

    return show
