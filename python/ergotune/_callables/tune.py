"""The way in: :func:`ergotune.tune_callable`."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import re
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _core
from .._core import Problem
from .._results import REFERENCE_IS_DEFAULT, VERIFIED_WITH, Result, as_text
from .._session import Progress, Row, _is_quiet, _plain_settings, _print_notes, tune
from . import arrays, workers
from .identity import identity
from .session import Work, why_no_output, why_not_callable

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._settings import Settings

Values = Union[Iterable[Any], int, float, Callable[..., Iterable[Any]]]
#: s: the setting's default.
_TIME_LIMIT = 30.0
#: How many configurations may fail before none gives expected outputs.
_REFERENCES = 5


def kept(value: Any) -> Any:
    """A value of a parameter as it is kept: objects (a dtype, None, a tuple) are kept by their names, the same in every process."""
    if isinstance(value, (bool, int, float, str, np.generic)):
        return value
    text = getattr(value, "__name__", None) or str(value)
    if text == object.__repr__(value) and hasattr(value, "__dict__"):
        text = f"{type(value).__name__}({', '.join(f'{name}={held}' for name, held in vars(value).items())})"
    return re.sub(r" at 0x[0-9a-f]+", "", text)


class _OfObjects:
    """A function of parameters, by name or in a row, that is given the objects of the space instead of their names."""

    def __init__(self, function: Callable[..., Any], values: Mapping[str, Mapping[str, Any]]) -> None:
        self._function, self._values = function, values
        self.__name__ = getattr(getattr(function, "func", function), "__name__", type(function).__name__)
        self.__code__ = getattr(function, "__code__", None)
        self.__wrapped__ = function  # whose identity it has

    def __call__(self, *rows: Row, **named: Any) -> Any:
        return self._function(*map(self._with_objects, rows), **self._with_objects(named))

    def _with_objects(self, row: Row) -> Row:
        return {name: self._values[name].get(as_text(value), value) if name in self._values else value for name, value in row.items()}


class _Generated(_OfObjects):
    """A function of parameters that returns the values of another one: their names, and remembers the objects."""

    def __init__(self, function: Callable[..., Any], values: Dict[str, Dict[str, Any]], parameter: str) -> None:
        super().__init__(function, values)
        self._known = values[parameter]

    def __call__(self, *rows: Row, **named: Any) -> Any:
        listed = list(super().__call__(*rows, **named))
        plain = [kept(value) for value in listed]
        self._known.update((as_text(shown), value) for shown, value in zip(plain, listed) if shown is not value)
        return plain


def _verified_with(verify: Union[Callable[..., Any], bool, None]) -> str:
    """What outputs are compared with, as results show it."""
    if verify is False:
        return "nothing (verify=False)"
    return f"the outputs of {getattr(verify, '__name__', 'verify')}()" if verify else REFERENCE_IS_DEFAULT


def _of_objects(metrics: Any, work: Work) -> Any:
    if not isinstance(metrics, Mapping):
        return metrics  # tune() refuses it
    return {name: _OfObjects(metric, work.values) if callable(metric) else metric for name, metric in metrics.items()}


def _shows_its_parameters(function: Callable[..., Any]) -> bool:
    """Whether a parameter that changes something occurs in the function's source."""
    if not inspect.isfunction(function):
        return False
    try:
        inspect.getsource(function)
    except (OSError, TypeError):
        return False
    return all(taken.kind is not taken.VAR_KEYWORD for taken in inspect.signature(function).parameters.values())


def _problem(name: str, space: Mapping[str, Values], default: Mapping[str, Any], restrictions: Sequence[Any],
             work: Work, depends_on: str) -> Problem:
    problem = Problem(name, description=VERIFIED_WITH + _verified_with(work.verify))
    function = re.sub(r"\W|^(?=\d)", "_", name) + "_" + hashlib.sha256(depends_on.encode()).hexdigest()[:12]
    known = depends_on if _shows_its_parameters(work.function) else f"{depends_on}\ntakes {', '.join(map(str, space))}"
    text = _core.callable_source("".join(f"// {line}\n" for line in known.splitlines()))
    for language in ("cuda", "c"):
        problem.set_source(language, text, function)
    problem.set_verification("none")
    problem.input_contents = arrays.contents_hash(work.arguments)
    for parameter, values in space.items():
        if not isinstance(parameter, str) or not parameter.isidentifier():
            raise TypeError(f"a parameter's name is that of a keyword argument of the callable, not {parameter!r}")
        if callable(values):
            work.values[parameter] = {}
            problem.add_generator(parameter, _Generated(values, work.values, parameter))
            continue
        if not isinstance(values, (str, bytes, int, float, np.generic, Iterable)):
            raise TypeError(f"the values of the parameter {parameter} are a list, or one number or text, not {values!r}")
        listed = [values] if isinstance(values, (str, bytes, int, float, np.generic)) else list(values)
        plain = [kept(value) for value in listed]
        work.values[parameter] = {as_text(shown): value for shown, value in zip(plain, listed)}
        if len(work.values[parameter]) < len(listed):
            scalars = [value for value in listed if isinstance(value, (bool, int, float, str))]
            if twice := [value for number, value in enumerate(scalars) if value in scalars[:number]]:
                raise TypeError(f"two values of the parameter {parameter} are equal: {twice[0]!r}")
            raise TypeError(f"two values of the parameter {parameter} have the same name: {', '.join(map(as_text, plain))}"
                            "; results are kept by names: define functions with def and give objects a __str__")
        if parameter in default and kept(default[parameter]) not in plain:
            raise ValueError(f"default: {parameter} has no value {default[parameter]!r}; it has {', '.join(map(as_text, plain))}")
        # The first value is named, too: a note reports a restriction that excludes it.
        problem.add_parameter(parameter, plain, default=kept(default[parameter]) if parameter in default else next(iter(plain), None))
    for restriction in restrictions:
        problem.restrict(_OfObjects(restriction, work.values) if callable(restriction) else restriction)
    return problem


def _defaults_of(function: Callable[..., Any], space: Mapping[str, Values]) -> Dict[str, Any]:
    """What the function's signature gives parameters that have this value among theirs: as the caller runs it today."""
    found: Dict[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):
        for name, parameter in inspect.signature(function).parameters.items():
            values = space.get(name)
            if parameter.default is not parameter.empty and isinstance(values, Iterable) and kept(parameter.default) in map(kept, values):
                found[name] = parameter.default
    return found


def _references(problem: Problem, default: Mapping[str, Any]) -> List[Dict[str, str]]:
    """The default configuration and a few more, in case that it does not run."""
    space = _core.SearchSpace(problem)
    if not len(space):
        return []  # tune() gives the reason
    first = {name: kept(default[name]) if name in default else space.values(name)[0] for name in space.parameter_names}
    index = space.index_of(first) or 0
    rows = [space[index], *(space[other] for other in range(min(len(space), _REFERENCES)) if other != index)]
    return [{name: as_text(value) for name, value in row.items()} for row in rows]


def _limit(time_limit: Optional[float], seconds: Optional[float]) -> Tuple[float, str]:
    """How long what runs before anything is measured may take, and the setting that limits it."""
    limit = _TIME_LIMIT if time_limit is None else time_limit
    return (float(seconds), "seconds") if seconds is not None and seconds < limit else (float(limit), "time_limit")


def _check_keywords(function: Callable[..., Any], space: Mapping[str, Values]) -> None:
    if not inspect.isfunction(getattr(function, "__func__", function)):
        return
    taken = inspect.signature(function, follow_wrapped=False).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        return
    names = [parameter.name for parameter in taken if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    if unknown := [name for name in space if name not in names]:
        raise TypeError(f"space has a parameter {unknown[0]!r}, which is not an argument of {function.__name__}(): it takes "
                        f"{', '.join(names) or 'none by keyword'}")


def tune_callable(
    function: Callable[..., Any], space: Mapping[str, Values], *, arguments: Any = (), setup: Optional[Callable[[], Any]] = None,
    verify: Union[Callable[..., Any], bool, None] = None, default: Optional[Mapping[str, Any]] = None,
    restrictions: Union[str, Callable[..., bool], Sequence[Union[str, Callable[..., bool]]]] = (),
    metrics: Optional[Mapping[str, Union[str, Callable[[Row], float]]]] = None, execution: Optional[Mapping[str, Any]] = None,
    compile: Optional[Callable[..., Any]] = None, absolute_tolerance: Optional[float] = None,
    relative_tolerance: Optional[float] = None, name: Optional[str] = None, version: str = "", in_process: Optional[bool] = None,
    seconds: Optional[float] = None, observers: Sequence[Any] = (), progress: Optional[Progress] = None, resume: bool = True,
    take_over: bool = False, quiet: Optional[bool] = None, devices: Sequence[str] = (), watch: bool = False, **settings: Unpack[Settings],
) -> Result:
    """Tunes a Python callable as :func:`tune` tunes a kernel: the same strategies, intervals, clocks, store and report.

    ``function(*arguments, **configuration)`` does the work once: it launches kernels of any framework, or computes on the CPU. If it
    returns a function, that one is launched without arguments, and the call that returned it counts as compiling.

    Args:
        function: the callable. It runs in a worker process if it can be pickled, so that a crash or a hang is the status of one
            configuration; otherwise in this process, and a note reports it.
        space: by parameter its values, any objects (a number or a text is one value), or a function of earlier parameters (by name, or of a dict)
            that returns them.
        arguments: a tuple, or a dict of keyword arguments. Arrays (NumPy, PyTorch, CuPy, ``__cuda_array_interface__``), lists, dicts,
            sets, generators of random numbers, and what lists, dicts and attributes of objects hold, have their original contents
            whenever a configuration begins, and after the session.
        setup: function() that makes the arguments in the process that measures.
        verify: reference function of the arguments (of those that it names, where they are a dict). It returns what ``function`` should
            return; or a dict of the arguments that ``function`` writes, by name or position (one without any of their names is what
            ``function`` should return); or it writes into the arguments itself and returns nothing. None: the outputs of the default configuration are expected of all. False: outputs are not
            checked. What is no number or array is compared by ``==``.
        default: values of the default configuration; of a parameter that is not named, the default in the function's signature if it is
            among the values, else the first value.
        absolute_tolerance, relative_tolerance: outputs are right where \\|x - reference\\| <= absolute + relative * \\|reference\\|. None:
            whole numbers are compared exactly; of others the relative tolerance is 1e-6 for float64, 1e-4 for float32, 0.01 for float16,
            0.02 for bfloat16 and 0.15 below (the less precise type of output and reference), and the absolute one that part of the size
            of the reference's numbers: three times the lower quartile of those other than zero, at least 0.01, at most the root mean square.
        restrictions: conditions as text or functions, as :meth:`Problem.restrict` takes them. Functions are given the objects of the
            space, texts compare their names.
        metrics: expressions, or functions of a row or of its values by name; one that raises has no value, and a note names it.
        execution: clocks and limits as parameters: {"core_clock_mhz": 5} (:meth:`Problem.add_execution_parameter`).
        compile: ``function(**configuration)`` that compiles without launching anything and leaves its result in a cache on disk; runs in
            ``jobs`` processes beside measuring.
        name: of the problem; default: the function's.
        version: part of the identity of results, for what is not seen from the functions: files, compiled libraries, contents of arrays.
        in_process: True: in this process. False: refuses to.
        seconds, observers, progress, resume, take_over, quiet, devices, watch, settings: as for :func:`tune`.

    GPU work is timed between events on one stream, which is made PyTorch's and CuPy's current one; other frameworks are awaited.
    Use ``device="host"`` for callables that compute on the CPU of a machine with a GPU.
    """
    if not callable(function):
        raise TypeError(f"function is a callable, not {function!r}")
    for what, value in (("setup", setup), ("verify", None if verify is False else verify), ("compile", compile)):
        if value is not None and not callable(value):
            raise TypeError(f"{what} is a function, not {value!r}")
    for what, called in (("function", function), ("setup", setup), ("verify", verify), ("compile", compile)):
        if callable(called) and (why := why_no_output(called)):
            raise TypeError(f"{what} {why}; give a function that does it and returns the result")
    if not isinstance(space, Mapping) or not space:
        raise TypeError(f"space is a dict of parameters and their values, not {space!r}")
    _check_keywords(function, space)
    if setup is not None and (not isinstance(arguments, tuple) or arguments):
        raise TypeError("arguments and setup both make the arguments: give one of them")
    if "executor" in settings:
        raise TypeError("executor= is for problems (ergotune.tune); functions are called in one worker for each of devices=")
    _plain_settings(settings, tune_callable.__kwdefaults__)
    space = {parameter: list(values) if isinstance(values, (Iterator, list, tuple)) else values for parameter, values in space.items()}
    default = {**_defaults_of(function, space), **(default or {})}
    if unknown := [parameter for parameter in default if parameter not in space]:
        raise TypeError(f"default names {unknown[0]!r}, which is not a parameter of the space")
    for taken in ("node_commands", "nodes"):
        if settings.get(taken):
            raise _core.UserError(f"{taken}: callables run on this machine only")
    for device in [settings.get("device"), *([devices] if isinstance(devices, str) else devices or ())]:
        if isinstance(device, str) and device.startswith("opencl"):
            raise _core.UserError(f"a Python function is not tuned on device={device!r}: device=\"host\" is for functions that compute on the "
                                  "CPU; without device=, or with cuda or hip, it runs on the GPU of its arrays")
    if setup is None and (why := why_not_callable(function, arguments, space)):
        raise TypeError(why)
    if isinstance(restrictions, str) or callable(restrictions):
        restrictions = [restrictions]
    if not isinstance(restrictions, Iterable):
        raise TypeError(f"restrictions is a condition as text, a function, or a list of them, not {restrictions!r}")
    work = Work(function, arguments, setup, verify, compile, absolute_tolerance, relative_tolerance)
    chosen = [value for values in space.values() if isinstance(values, list) for value in values if callable(value)]
    depends_on = identity((function, setup, verify, *chosen), arguments, version)
    depends_on += f"\nverified: {verify if verify is None or verify is False else 'by a function'} {absolute_tolerance} {relative_tolerance}"
    name = name or getattr(function, "__name__", None) or type(function).__name__
    problem = _problem(name, space, default, restrictions, work, depends_on)
    if verify is None:
        work.references = _references(problem, default)
    elif any(map(callable, space.values())):
        _core.SearchSpace(problem)  # calls the functions, whose values workers need
    for parameter, clocks in (execution or {}).items():
        problem.add_execution_parameter(parameter, clocks)
    if compile is None:
        settings.setdefault("jobs", 1)  # there is nothing to do beforehand,
        settings.setdefault("cache", False)  # and no code to keep
    with tempfile.TemporaryDirectory(prefix="ergotune-callable-") as folder, contextlib.ExitStack() as stack:
        why_not = "observers are objects of this process" if any(not isinstance(observer, str) for observer in observers) else None
        why_not = None if in_process else why_not or workers.send(work, folder, _limit(settings.get("time_limit"), seconds))
        if why_not and in_process is False:
            raise _core.UserError(f"the callable runs in this process only: {why_not}")
        here = bool(in_process or why_not)
        stack.enter_context(workers.in_this_process(work) if here else workers.in_workers(folder))
        result = tune(problem, seconds=seconds, observers=observers, metrics=_of_objects(metrics, work), progress=progress, resume=resume,
                      take_over=take_over, quiet=quiet, devices=devices, watch=watch, in_process=here,
                      **settings)
    result._given = work.values
    if why_not:
        note = f"the callable ran in this process, which a crash or a hang would have ended as well: {why_not}"
        result.notes.append(note)
        _print_notes([note], _is_quiet(quiet))
    return result
