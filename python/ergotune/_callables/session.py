"""A callable on a device: its arguments, what its outputs are compared with, and its launches."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from .. import _core
from .._results import NOTHING_COMPARED
from . import arrays, contents

# -- what a callable raised, as the fault of a configuration ----------------------------------------------------------

#: Exceptions by the names of their classes, since no framework is imported for them.
_NAMES = {
    "compile": {"CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct", "PTXASError", "CompileException",
                "CompileError", "NVRTCError", "NvrtcError", "NvvmError", "LinkerError", "TypingError", "LoweringError",
                "UnsupportedError", "NumbaError"},
    "launch": {"OutOfResources"},
    "memory": {"OutOfMemoryError", "MemoryError"},
    "device": {"CUDARuntimeError", "CUDADriverError", "AcceleratorError", "CudaAPIError", "CudaRuntimeAPIError", "LogicError"},
}
_DEVICE_MESSAGE = re.compile(r"CUDA error|HIP error|illegal memory access|device-side assert|misaligned address|unspecified launch failure")
_REFUSED_LAUNCH = re.compile(r"INVALID_VALUE|invalid argument|too many resources|OUT_OF_RESOURCES")


class Fault(Exception):
    """``kind``: compile, launch, memory, device (its context is lost), wrong (outputs), user (a mistake), or error (any other)."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def describe(error: BaseException, function: Any = None) -> str:
    """The exception and the place in the user's code where it was raised; that of ``function`` where none was reached."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    here = str(Path(__file__).parent)
    frames = [frame for frame in inspect.getinnerframes(error.__traceback__) if not frame.filename.startswith(here)] if error.__traceback__ else []
    code = getattr(function, "__code__", None)
    if frames:
        return f"{text} ({_file(frames[0].filename)}, line {frames[0].lineno})"
    return f"{text} ({_file(code.co_filename)}, line {code.co_firstlineno})" if code else text


def place_of_lambda(function: Any) -> str:
    """" (FILE, line N)"; empty for a function that has a name."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return f" ({_file(code.co_filename)}, line {code.co_firstlineno})" if code and code.co_name == "<lambda>" else ""


def _file(name: str) -> str:
    """Of a notebook's cell, whose file is a temporary one, what the notebook calls it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cell = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(name)
    if cell:
        return " ".join(cell)
    return "a cell of the notebook" if "ipykernel_" in name else Path(name).name


def as_fault(error: Exception) -> Fault:
    if isinstance(error, Fault):
        return error
    names = {base.__name__ for base in type(error).__mro__}
    text = str(error)
    for kind, known in _NAMES.items():
        if names & known:
            refused = kind == "device" and _REFUSED_LAUNCH.search(text)
            return Fault("launch" if refused else kind, describe(error))
    return Fault("device" if _DEVICE_MESSAGE.search(text) else "error", describe(error))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- the callable -----------------------------------------------------------------------------------------------------


@dataclass
class Work:
    """Everything that a process needs to run the configurations of a callable."""

    function: Callable[..., Any]
    arguments: Any
    setup: Optional[Callable[[], Any]]
    verify: Union[Callable[..., Any], bool, None]
    compile: Optional[Callable[..., Any]]
    absolute_tolerance: Optional[float]
    relative_tolerance: Optional[float]
    #: By parameter: the value that stands behind each text. Parameters that a function generates have none.
    values: Dict[str, Dict[str, Any]] = field(default_factory=dict)
    #: Where verify is None: configurations as texts, the first of which that runs gives the expected outputs.
    references: List[Dict[str, str]] = field(default_factory=list)
    #: In a worker: s that setup, verify and the default configuration may take before anything is measured, and what sets them.
    limit: Optional[Tuple[float, str]] = None
    #: What readers of every result should know.
    note: str = ""

    def configuration(self, texts: Mapping[str, str]) -> Dict[str, Any]:
        return {name: known[texts[name]] if texts[name] in known else _literal(texts[name]) for name, known in self.values.items()}


def _literal(text: str) -> Any:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


class Kernel:
    """A configuration that was verified and is launched again and again."""

    def __init__(self, session: Session, call: Callable[[], Any], resources: Mapping[str, int], order: str, changed: List[Any],
                 remark: str) -> None:
        self._session = session
        self._call = call
        self._changed = changed
        self.changes_arguments = bool(changed)
        self._used: List[Any] = [key for key in changed if isinstance(key, contents.Holder)]
        #: A launch on what an earlier one has left may have nothing to do, or fail.
        self.needs_reset = bool(self._used)
        self.resources = {name: int(value) for name, value in resources.items() if value is not None}
        self.order = order
        #: What readers of its results should know.
        self.remark = remark

    def launch(self, count: int) -> None:
        call = self._call
        try:
            with self._session.on_queue():
                if not self._used:
                    for _ in range(count):  # as short as can be: it is timed
                        call()
                    return
                for _ in range(count):
                    if not self._session.is_fresh:
                        self._session.restore(self._used)
                    self._session.is_fresh = False
                    call()
        except Exception as error:
            raise as_fault(error) from error

    def restore(self) -> None:
        """What a launch changes in the arguments gets its first contents back."""
        try:
            self._session.restore(self._changed)
            self._session.is_fresh = True
        except Exception as error:
            raise as_fault(error) from error


class Session:
    """Opened once in the process that measures."""

    def __init__(self, work: Work, device: str, is_cpu: bool, queue: int) -> None:
        self._work = work
        self._on_cpu = is_cpu
        self._queue = None if is_cpu else queue
        #: Arguments that a launch changes, None before the first. On a GPU, where copies take longer than many a launch, none is reset.
        self._written: Optional[List[Any]] = None if is_cpu else []
        number = device.rpartition(":")[2]
        self._number = int(number) if number.isdigit() else 0
        self._scales: Dict[str, float] = {}  # usual size of each expected output
        self._unchanged: List[Any] = []  # arguments that no configuration changes where the default has no output
        self.is_fresh = False  # nothing was launched since the last Kernel.restore()
        self._left: Optional[List[Any]] = None  # arguments that the first configuration leaves as they were, None before it
        try:
            with self.on_queue():
                with self._limited("setup()", "setup() is part of each worker's start"):
                    made = work.setup() if work.setup else work.arguments
                if work.setup and work.limit:
                    _core.begin_allocation_limits()
                self._take(made)
                self._synchronise()  # what the caller has queued on other streams
                self._originals = {key: arrays.saved(array) for key, array in self._arrays.items()}
                self._starts = dict(self._originals)
                self._expected = self._find_expected()
        except Exception as error:
            if isinstance(error, Fault) and error.kind == "user":
                raise
            raise Fault("user", f"setup, or the reference, of the callable failed: {describe(error)}") from error

    @contextlib.contextmanager
    def _limited(self, what: str, remedy: str) -> Iterator[None]:
        """Ends this worker where ``what`` hangs."""
        if not self._work.limit:
            yield
            return
        seconds, setting = self._work.limit
        _core.limit_worker(seconds, f"{what} did not end within {seconds:g} s ({setting}=): {remedy}; give it more time by {setting}=, or correct what "
                           "hangs")
        try:
            yield
        finally:
            _core.limit_worker(0, "")

    def _take(self, made: Any) -> None:
        self._positional: List[Any] = []
        self._named: Dict[str, Any] = {}
        if isinstance(made, Mapping):
            self._named = dict(made)
        elif isinstance(made, (tuple, list)):
            self._positional = list(made)
        elif arrays.is_array(made):
            self._positional = [made]
        elif made is not None:
            made_by = "setup returns" if self._work.setup else "arguments= is"
            raise Fault("user", f"{made_by} a tuple or list of the function's arguments, a dict of them by name, or one array, not {made!r}")
        if why := why_not_callable(self._work.function, made, self._work.values):
            raise Fault("user", why)
        given = [*enumerate(self._positional), *self._named.items()]
        self._given = given
        try:
            found = list(contents.found_in(given))
        except contents.NotRestored as error:
            raise Fault("user", str(error)) from error
        #: The arrays among the arguments and in what these hold, by position, name or path.
        self._arrays: Dict[Any, Any] = {key: value for key, value in found if arrays.is_array(value)}
        self._holders = [contents.Holder(key, value) for key, value in found if not arrays.is_array(value)]

    def on_queue(self) -> ContextManager[None]:
        """Frameworks launch on the queue that is timed."""
        return contextlib.nullcontext() if self._queue is None else arrays.stream(self._queue, self._number)

    def _synchronise(self) -> None:
        arrays.synchronise(list(self._arrays.values()))

    def _arrays_now(self) -> Dict[Any, Any]:
        """What holds arrays may hold others since the launch."""
        return {key: value for key, value in contents.found_in(self._given) if arrays.is_array(value)} if self._holders else self._arrays

    def _copies(self) -> Dict[Any, Any]:
        return {key: arrays.copy(array) for key, array in self._arrays_now().items()}

    def _restore(self) -> None:
        self.restore([*self._holders, *self._starts])

    def restore(self, keys: Iterable[Any]) -> None:
        for key in keys:
            if isinstance(key, contents.Holder):
                key.restore()
            else:
                arrays.fill(self._arrays[key], self._starts[key])

    def close(self) -> None:
        """The caller's arrays get their contents back."""
        self._starts = self._originals
        with contextlib.suppress(Exception):  # the device may be lost
            self._restore()
            self._synchronise()

    # -- what outputs are compared with ------------------------------------------------------------------------------

    def _find_expected(self) -> Optional[Tuple[Dict[Any, Any], Optional[List[Any]]]]:
        """The arguments that are written, and what is returned (None: not compared)."""
        found = None
        if callable(self._work.verify):
            found = self._expected_of_reference(self._work.verify)
        elif self._work.references:
            found = self._expected_of_configuration()
        compared = [*found[0].values(), *filter(arrays.is_numeric, found[1] or [])] if found else []
        if compared and not any(map(arrays.has_numbers, compared)):
            raise Fault("user", "every element that outputs would be compared with is NaN or infinite, which verifies nothing: give other "
                        "arguments, or verify=False")
        return found

    def _expected_of_reference(self, verify: Callable[..., Any]) -> Tuple[Dict[Any, Any], Optional[List[Any]]]:
        with self._limited("verify()", "outputs are compared with what it returns"):
            returned = verify(*self._positional, **_accepted(verify, self._named))
            self._synchronise()
        after = self._copies()
        self._restore()
        if returned is None:
            changed = self._changed(after)
            if not changed:
                raise Fault("user", "verify changed none of the arguments and returned nothing: nothing can be compared; "
                            "return what is expected")
            return changed, None
        named = isinstance(returned, Mapping) and any(key in self._arrays for key in returned)
        if isinstance(returned, Mapping) and not returned:
            raise Fault("user", "verify returns an empty dict: nothing can be compared; return what is expected")
        if not named:
            return {}, arrays.leaves(returned, copied=True)
        for key, value in returned.items():
            if key not in self._arrays:
                raise Fault("user", f"verify returns a dict of arguments, in which {key!r} is not an array among them ({', '.join(map(repr, self._arrays))}); "
                            "where the function returns a dict, return a list that holds it")
            if not arrays.difference(self._starts[key], value, 0, 0):
                raise Fault("user", f"the argument {key!r} holds what verify expects before anything has run, so that a configuration "
                            "that writes nothing would be right: fill it with other contents")
        return {key: arrays.copy(value) for key, value in returned.items()}, None

    def _expected_of_configuration(self) -> Optional[Tuple[Dict[Any, Any], Optional[List[Any]]]]:
        """The outputs of the first configuration that runs, whatever they are."""
        first: Optional[Fault] = None
        for texts in self._work.references:
            try:
                compile_beforehand(self._work, texts)
                with self._limited(f"the configuration {texts}", "outputs are compared with its outputs, unless there is verify= or default="):
                    call, result, _ = self._run(texts)
            except Exception as error:
                first = first or as_fault(error)
                if as_fault(error).kind == "device":
                    break
                continue
            returned = arrays.leaves(result, copied=True)
            changed = self._changed(self._copies())
            if not changed and not returned:
                changed = self._rewritten(call)
            self._restore()
            # where there are other outputs, what only some configurations write may be scratch memory (partial sums of a split loop)
            self._unchanged = [] if changed or returned else list(self._arrays)
            return changed, returned
        if first:
            raise Fault("user", f"the default configuration fails, so that there are no outputs to compare with: {first}; give a reference "
                        "function by verify=, another default=, or verify=False")
        return None

    def _changed(self, after: Mapping[Any, Any]) -> Dict[Any, Any]:
        return {key: array for key, array in after.items() if key not in self._starts or not arrays.same(array, self._starts[key])}

    def _rewritten(self, call: Callable[[], Any]) -> Dict[Any, Any]:
        """Arguments that held the right outputs before anything ran, for example from an earlier call. They begin with zeros from now on."""
        found = {}
        for key, array in self._arrays.items():
            self._restore()
            arrays.clear(array)
            cleared = arrays.saved(array)
            if arrays.same(cleared, self._starts[key]):
                continue
            self._run_once(call)
            self._synchronise()
            if arrays.same(array, self._starts[key]):
                found[key] = self._starts[key]
                self._starts[key] = cleared
        return found

    def _run_once(self, call: Callable[[], Any]) -> Any:
        self.restore(contents.caches_of(call))
        return call()

    def _check(self, result: Any) -> str:
        """Which outputs could not be compared; empty where all were."""
        if self._expected is None:
            return ""
        arguments, returned = self._expected
        now = self._arrays_now()
        for key, expected in arguments.items():
            if key not in now:
                raise Fault("wrong", f"argument {key!r}: there is no array")
            self._compare(f"argument {key!r}", now[key], expected)
        changed = self._changed(now) if self._unchanged else {}
        for key in filter(changed.__contains__, self._unchanged):
            self._compare(f"argument {key!r}, which the default configuration leaves as it was", now[key], self._starts[key])
        actual = arrays.leaves(result)
        if returned is None:
            given = list(map(id, self._arrays.values()))
            beside = any(arrays.is_numeric(leaf) and id(leaf) not in given for leaf in actual)
            return "what it returns is not compared: the reference states contents of arguments only" if beside else ""
        if len(actual) != len(returned):
            if self._work.references:
                raise Fault("wrong", f"it returns {len(actual)} values and the default configuration {len(returned)}")
            raise Fault("user", f"the reference returns {len(returned)} values and the callable {len(actual)}; where the callable "
                        "writes into an argument, verify returns a dict of the argument's name (or position) and what it should hold")
        skipped = []
        for number, (is_now, expected) in enumerate(zip(actual, returned)):
            what = "the result" if len(returned) == 1 else f"result {number}"
            if arrays.is_numeric(is_now) or arrays.is_numeric(expected):
                self._compare(what, is_now, expected)
                continue
            same = arrays.equal(is_now, expected)
            if same is None:
                skipped.append(f"{what} ({type(is_now).__name__})")
            elif not same:
                raise Fault("wrong", f"{what}: {_short(is_now)} instead of {_short(expected)}")
        if arguments and len(returned) == 1:
            return ""  # a handle of the launch
        if not arguments and len(skipped) == len(returned):
            what = f"{', '.join(skipped)} cannot be compared by ==" if skipped else "the default configuration returned nothing and changed no array"
            return f"{NOTHING_COMPARED}: {what}"
        return f"outputs that could not be compared: {', '.join(skipped)}" if skipped else ""

    def _compare(self, what: str, actual: Any, expected: Any) -> None:
        absolute, relative = self._work.absolute_tolerance, self._work.relative_tolerance
        if absolute is None and what not in self._scales:
            self._scales[what] = arrays.usual_size(expected)
        why = arrays.difference(actual, expected, absolute, relative, self._scales.get(what))
        if why:
            raise Fault("wrong", f"{what}: {why}")

    # -- configurations ----------------------------------------------------------------------------------------------

    def compile(self, texts: str) -> None:
        compile_beforehand(self._work, json.loads(texts))

    def prepare(self, texts: str) -> Kernel:
        """Compiles, runs and verifies a configuration."""
        try:
            with self.on_queue():
                call, result, maker = self._run(json.loads(texts))
                try:
                    remark = self._check(result)
                except Fault as fault:
                    if fault.kind == "wrong" and json.loads(texts) in self._work.references[:1]:
                        raise Fault("wrong", f"{fault}; these are outputs of the same configuration: if they are random, give the function a seed, or a "
                                    "reference by verify= with tolerances") from fault
                    raise
                resources = _resources(maker) or _resources(result)
                written, also = self._written_by()
                holders = [holder for holder in self._holders if holder.changed()]
            if self._work.note:
                remark = f"{self._work.note}{remark and '; '}{remark}"
            if also:
                remark += f"{remark and '; '}it changes {', '.join(map(repr, also))}, which another configuration leaves as it was"
            if holders and not self._on_cpu:
                remark += (f"{remark and '; '}it changes {', '.join(repr(holder.name) for holder in holders)}, which on a GPU is not restored between "
                           "launches: later ones may have less to do")
            changed = [*contents.caches_of(call), *(holders if self._on_cpu else []), *written]
            return Kernel(self, call, resources, arrays.order(), changed, remark)
        except Exception as error:
            raise as_fault(error) from error

    def _written_by(self) -> Tuple[List[Any], List[Any]]:
        """The arguments to reset before launches, and those that the configuration that ran last changes and the first one did not."""
        if self._written is not None and (self._expected is None or not self._on_cpu):  # on a GPU a comparison takes longer than many a launch
            return self._written, []
        changed = [key for key in self._changed(self._arrays_now()) if key in self._arrays]
        if self._left is None:
            self._left = [key for key in self._arrays if key not in changed]
        also = [key for key in changed if key in self._left]
        if self._written is None:
            self._written = changed
        return self._written + also, also

    def _run(self, texts: Mapping[str, str]) -> Tuple[Callable[[], Any], Any, Any]:
        """What is launched, what it returned, and what the function returned."""
        self._restore()
        self.is_fresh = False
        call: Callable[[], Any] = functools.partial(self._work.function, *self._positional, **self._named, **self._work.configuration(texts))
        made = result = self._run_once(call)
        if callable(made) and not arrays.is_array(made):
            call = made
            self._synchronise()
            self._restore()
            result = self._run_once(call)
        self._synchronise()
        return call, result, made


def compile_beforehand(work: Work, texts: Mapping[str, str]) -> None:
    if not work.compile:
        return
    try:
        work.compile(**work.configuration(texts))
    except Exception as error:
        raise Fault("compile", describe(error)) from error


def why_not_callable(function: Callable[..., Any], arguments: Any, parameters: Mapping[str, Any]) -> str:
    """Why a function of Python cannot be called with these arguments and parameters; empty if it can."""
    if not inspect.isfunction(getattr(function, "__func__", function)):
        return ""
    named = arguments if isinstance(arguments, Mapping) else {}
    positional = arguments if isinstance(arguments, (tuple, list)) else [] if arguments is None or arguments is named else [arguments]
    try:
        inspect.signature(function, follow_wrapped=False).bind(*positional, **{**named, **parameters})
    except TypeError as error:
        return (f"{function.__name__}() cannot be called with {len(positional)} arguments by position and "
                f"{', '.join([*named, *parameters])} by name: {error}")
    return ""


def why_no_output(function: Callable[..., Any]) -> str:
    """Why calling it does not do its work; empty if it does."""
    called = getattr(function, "func", function) if isinstance(function, functools.partial) else function
    if not inspect.isroutine(called) and not inspect.isclass(called):
        called = getattr(type(called), "__call__", called)
    kind = "a generator function" if inspect.isgeneratorfunction(called) else "a coroutine function (async def)" if \
        inspect.iscoroutinefunction(called) else "an asynchronous generator function" if inspect.isasyncgenfunction(called) else ""
    return kind and f"is {kind}: calling it returns an object and does none of its work"


def _accepted(function: Callable[..., Any], named: Dict[str, Any]) -> Dict[str, Any]:
    """A reference function takes those of the named arguments that it needs."""
    with contextlib.suppress(TypeError, ValueError):
        parameters = inspect.signature(function).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            names = {parameter.name for parameter in parameters}
            return {name: value for name, value in named.items() if name in names}
    return named


def _resources(launched: Any) -> Dict[str, int]:
    """What compiled code needs, where the function returned something that knows it."""
    given = getattr(launched, "resources", None)
    if callable(given):
        with contextlib.suppress(AttributeError):  # kernels of a simulator have none
            given = given()
    if isinstance(given, Mapping):
        return dict(given)
    metadata = getattr(launched, "metadata", None)  # a CompiledKernel of Triton
    if metadata is None or not hasattr(launched, "asm"):
        return {}
    found = {"registers": getattr(launched, "n_regs", None), "spilled_registers": getattr(launched, "n_spills", None),
             "shared_bytes": getattr(metadata, "shared", None)}
    return {name: value for name, value in found.items() if value is not None}
