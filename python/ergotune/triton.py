"""Triton kernels: :func:`autotune` in place of ``triton.autotune``, and :func:`do_bench` for ``triton.autotune(do_bench=...)``."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib
import inspect
import json
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
from triton.runtime.autotuner import Autotuner as TritonAutotuner  # type: ignore[import-not-found,import-untyped,unused-ignore]

from . import _core
from ._callables.arrays import is_array
from ._callables.forks import ForkedCompiles
from ._callables.identity import identity
from ._callables.tune import as_text, kept, tune_callable
from ._results import Result
from ._session import describe_device

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings

#: What a triton.Config has beside the parameters of the kernel.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")
#: Up to so many listed configurations all are measured.
_FEW = 128


class _Space:
    """Parameters with their values. Where configurations are listed, no others belong to it."""

    def __init__(self, values: Mapping[str, Iterable[Any]], listed: Optional[Mapping[Tuple[str, ...], Any]] = None) -> None:
        self.values = {name: list(given) for name, given in values.items()}
        self.listed = dict(listed or {})
        self._by_text = {name: {as_text(kept(value)): value for value in given} for name, given in self.values.items()}

    @classmethod
    def of_configs(cls, configs: Sequence[Any]) -> _Space:
        rows = [config.all_kwargs() for config in configs]
        names = list(dict.fromkeys(name for row in rows for name in row))
        texts = [tuple(as_text(kept(row.get(name))) for name in names) for row in rows]
        values = {name: list({text[place]: row.get(name) for text, row in zip(texts, rows)}.values()) for place, name in enumerate(names)}
        listed: Dict[Tuple[str, ...], Any] = {}
        for text, config in zip(texts, configs):
            listed.setdefault(text, config)
        return cls(values, listed)

    def texts(self, configuration: Mapping[str, Any]) -> Dict[str, str]:
        return {name: as_text(kept(configuration[name])) for name in self.values}

    def contains(self, configuration: Mapping[str, Any], /) -> bool:
        return tuple(self.texts(configuration).values()) in self.listed

    def config(self, texts: Mapping[str, str]) -> Any:
        """The triton.Config. Raises KeyError for values that are not offered."""
        if self.listed:
            return self.listed[tuple(texts[name] for name in self.values)]
        values = {name: known[texts[name]] for name, known in self._by_text.items()}
        options = {name: values.pop(name) for name in _OPTIONS if name in values}
        return triton.Config(values, **{name: value for name, value in options.items() if value is not None})

    def __str__(self) -> str:
        return f"{[(name, list(known)) for name, known in self._by_text.items()]} {sorted(self.listed)}"


def _choices_folder() -> Path:
    data = os.environ.get("ERGOTUNE_DATA_DIR")
    return Path(data or Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "ergotune") / "choices"


class _Choices:
    """What was chosen for a kernel, by device and key, in a file that processes share. ``depends_on``: each has a file of its own.
    None: nothing is kept."""

    def __init__(self, name: str, depends_on: Optional[str]) -> None:
        digest = hashlib.sha256((depends_on or "").encode()).hexdigest()[:16]
        self._file = None if depends_on is None else _choices_folder() / f"{name}-{digest}.json"

    def find(self, device: str, key: str) -> Optional[Dict[str, str]]:
        return next((row["configuration"] for row in self._rows() if (row["device"], row["key"]) == (device, key)), None)

    def add(self, row: Dict[str, Any]) -> None:
        if self._file:
            others = [other for other in self._rows() if (other["device"], other["key"]) != (row["device"], row["key"])]
            draft = self._file.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps([*others, row], indent=1))
            os.replace(draft, self._file)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Of several processes one tunes, and the others take what it has chosen."""
        with contextlib.ExitStack() as held:
            if self._file:
                try:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    fcntl.flock(held.enter_context(open(self._file.with_suffix(".lock"), "w")), fcntl.LOCK_EX)
                except OSError as error:
                    warnings.warn(f"what is chosen is not kept for other processes: {error}; name a folder in ERGOTUNE_DATA_DIR", stacklevel=2)
                    self._file = None
            yield

    def _rows(self) -> List[Dict[str, Any]]:
        if self._file:
            with contextlib.suppress(OSError, ValueError):
                rows = json.loads(self._file.read_text())
                return rows if isinstance(rows, list) else []
        return []


class Autotuner(TritonAutotuner):  # type: ignore[misc,unused-ignore]
    """A kernel that is tuned when it is launched with a new key. ``result`` is the :class:`ergotune.Result` of the last tuning."""

    def __init__(self, fn: Any, configs: Sequence[Any], key: Sequence[str], hooks: Dict[str, Any], space: Optional[_Space],
                 keep: bool, how: Dict[str, Any]) -> None:
        super().__init__(fn, fn.arg_names, list(configs), list(key), **hooks)
        unknown = [name for name in self.keys if name not in self.arg_names]
        if unknown:
            raise ValueError(f"key names {unknown[0]!r}, which is not an argument of the kernel; there are {', '.join(self.arg_names)}")
        self.result: Optional[Result] = None
        self._space = space
        self._keep = keep
        self._how = how
        #: By device, as triton.autotune's own cache has one for all.
        self._caches: Dict[str, Dict[Any, Any]] = {}

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.nargs: Optional[Dict[str, Any]] = dict(zip(self.arg_names, args))
        named = {name: value for name, value in {**self.nargs, **kwargs}.items() if name in self.arg_names}
        config = self.configs[0]
        if self._space or len(self.configs) > 1:
            device = _device_of(named.values())
            self.cache = self._caches.setdefault(device, {})
            key = (*(named[name] for name in self.keys if name in named),
                   *(str(value.dtype) for value in named.values() if hasattr(value, "dtype")))
            if key not in self.cache:
                self.cache[key] = self._choose(device, repr(key), named, args, kwargs)
            config = self.cache[key]
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**(self.nargs or {}), **kwargs, **config.all_kwargs()})
        launched = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return launched

    def _choose(self, device: str, key: str, named: Dict[str, Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """What was chosen for the device and the key before; else tunes."""
        configs = [] if self._space else self.prune_configs(kwargs)
        if len(configs) == 1:
            return configs[0]
        space = self._space or _Space.of_configs(configs)
        if taken := [name for name in space.values if name in named]:
            raise ValueError(f"the launch gives {taken[0]!r} a value, which is tuned")
        device_name = describe_device(device)[2]
        choices = _Choices(self.base_fn.__name__, self._depends_on(space) if self._keep else None)
        with choices.locked():
            if known := choices.find(device_name, key):
                return space.config(known)
            began = time.time()
            self.result = self._tune(device, space, named, args, kwargs)
            self.bench_time = time.time() - began
            if self.result.interrupted:
                raise KeyboardInterrupt
            if self.result.best is None:
                raise _core.Error(f"no configuration of {self.base_fn.__name__} works on {device_name}: {self.result!r}")
            texts = space.texts(self.result.best)
            best = self.result.document["best"]
            choices.add({"device": device_name, "key": key, "configuration": texts, "objective": self.result.objective,
                         "value": best["objective"], "half_width": best.get("half_width"), "triton": triton.__version__,
                         "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        config = space.config(texts)
        if getattr(getattr(getattr(triton, "knobs", None), "autotuning", None), "print", False):
            print(f"ergotune tuned {self.base_fn.__name__} with key {key} in {self.bench_time:.2f} s: {config}")
        return config

    def _depends_on(self, space: _Space) -> str:
        functions = [value for value in (self._how["verify"], *self._how["restrictions"], self.pre_hook, self.post_hook) if callable(value)]
        apart = ("restrictions", "store", "quiet", "in_process", "jobs", "cache", "cache_dir")
        others = {name: value for name, value in self._how.items() if not callable(value) and name not in apart}
        texts = [text for text in self._how["restrictions"] if not callable(text)]
        return f"{identity((self.base_fn, *functions), (), '')}\n{space}\n{others}\n{texts}\n{triton.__version__}"

    def _tune(self, device: str, space: _Space, named: Dict[str, Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Result:
        how = dict(self._how)
        if space.listed:
            how["restrictions"] = [space.contains, *how["restrictions"]]
            first = next(iter(space.listed.values())).all_kwargs()
            how["default"] = {name: first.get(name) for name in space.values}
            if len(space.listed) <= _FEW and not how.get("budget"):
                how.setdefault("strategy", "brute_force")
        self._compile_ahead(self._offered(space), args, kwargs)
        arguments = dict(named)
        arguments.update({f"{name}.base": value.base for name, value in named.items()  # of a tensor descriptor
                          if not is_array(value) and is_array(getattr(value, "base", None))})
        others = {name: value for name, value in kwargs.items() if name not in named}
        positional = self.arg_names[: len(args)]
        return tune_callable(_Launches(self, space, positional, others), space.values, arguments=arguments, device=device,
                             name=self.base_fn.__name__, **how)

    def _offered(self, space: _Space) -> List[Any]:
        """All configurations, where they are few."""
        if space.listed:
            return list(space.listed.values()) if len(space.listed) <= _FEW else []
        problem = _core.Problem(self.base_fn.__name__)
        for name, values in space.values.items():
            problem.add_parameter(name, map(kept, values))
        for restriction in self._how["restrictions"]:
            problem.restrict(restriction)
        offered = _core.SearchSpace(problem)
        return [space.config(space.texts(row)) for row in offered] if len(offered) <= _FEW else []

    def _compile_ahead(self, configs: Sequence[Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """In several processes, into the kernel's cache. What fails here fails again when it is measured."""
        mode, kernel = getattr(triton, "AsyncCompileMode", None), _innermost(self.fn)
        if mode is None or not isinstance(kernel, triton.runtime.JITFunction):
            return
        jobs = self._how.get("jobs") or len(os.sched_getaffinity(0))
        tolerant = {"ignore_errors": True} if "ignore_errors" in inspect.signature(mode).parameters else {}
        compiles = ForkedCompiles(jobs)
        with contextlib.suppress(Exception), mode(compiles, **tolerant), compiles:
            for config in configs:
                current = {**kwargs, **config.all_kwargs(), "warmup": True}
                with contextlib.suppress(Exception):
                    if config.pre_hook is not None:
                        config.pre_hook({**(self.nargs or {}), **current})
                    self.fn.run(*args, **current)
        with contextlib.suppress(Exception):  # older releases keep what has failed
            for cache, *_ in kernel.device_caches.values():
                for key in [key for key, value in cache.items() if isinstance(value, triton.FutureKernel) and value.kernel is None]:
                    del cache[key]


class _Launches:
    """Makes the launch of a configuration. In another process the kernel is found by its name."""

    def __init__(self, kernel: Autotuner, space: _Space, positional: Sequence[str], others: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._space = space
        self._positional = list(positional)
        self._others = dict(others)
        self.__wrapped__ = kernel.base_fn  # whose source the results depend on

    def __getstate__(self) -> Dict[str, Any]:
        function = self._kernel.base_fn
        return {"_kernel": (function.__module__, function.__qualname__), "_space": self._space, "_positional": self._positional,
                "_others": self._others}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        module, name = state["_kernel"]
        found: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
        if not isinstance(found, Autotuner):
            raise _core.UserError(f"{name} of the module {module} is not the tuned kernel: decorate it where it is defined")
        self._kernel = found

    def __call__(self, **given: Any) -> Callable[[], Any]:
        kernel = self._kernel
        config = self._space.config(self._space.texts(given))
        args = [given.pop(name) for name in self._positional]
        named = {name: value for name, value in given.items() if name in kernel.arg_names and name not in self._space.values}
        current = {**self._others, **named, **config.all_kwargs()}
        full = {**dict(zip(self._positional, args)), **current}

        def launch() -> Any:
            if config.pre_hook is not None:
                config.pre_hook(full)
            kernel.pre_hook(full)
            try:
                launched = kernel.fn.run(*args, **current)
            except Exception as error:
                kernel.post_hook(full, exception=error)
                raise
            kernel.post_hook(full, exception=None)
            return launched

        return launch


def _innermost(fn: Any) -> Any:
    while hasattr(fn, "fn") and hasattr(fn.fn, "run"):
        fn = fn.fn
    return fn


def _device_of(values: Iterable[Any]) -> str:
    for value in values:
        tensor: Any = value if hasattr(value, "is_cuda") else getattr(value, "base", None)
        if getattr(tensor, "is_cuda", False):
            return f"{_gpu_backend()}:{tensor.device.index}"
    return "host"


def _gpu_backend() -> str:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return "hip" if torch.version.hip else "cuda"


def autotune(  # type: ignore[misc]
    configs: Optional[Sequence[Any]] = None, key: Sequence[str] = (), prune_configs_by: Optional[Dict[str, Any]] = None,
    reset_to_zero: Optional[Sequence[str]] = None, restore_value: Optional[Sequence[str]] = None,
    pre_hook: Optional[Callable[..., Any]] = None, post_hook: Optional[Callable[..., Any]] = None, warmup: Optional[int] = None,
    rep: Optional[int] = None, use_cuda_graph: bool = False, do_bench: None = None, cache_results: bool = True, *,
    space: Optional[Mapping[str, Iterable[Any]]] = None,
    restrictions: Union[str, Callable[..., bool], Sequence[Union[str, Callable[..., bool]]]] = (),
    reference: Optional[Callable[..., Any]] = None, verify: bool = True, absolute_tolerance: Optional[float] = None,
    relative_tolerance: Optional[float] = None, in_process: bool = True, seconds: Optional[float] = None, quiet: bool = True, **settings: Unpack[Settings],
) -> Callable[[Any], Autotuner]:
    """In place of ``triton.autotune``: tunes for energy as well, checks outputs, searches instead of trying everything, and remembers.

    A launch with a new key (values of the ``key`` arguments, types of the arguments, device) tunes; the best configuration is kept on
    disk for this kernel, device, key and objective, and used by the next process at once. Tensors have their original contents afterwards.

    Args:
        configs, key, prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook: as for ``triton.autotune``.
        rep: ms of timed launches per configuration at most (100 unless given, as in Triton): ``max_seconds`` in another unit.
        warmup: ignored with a warning: ergotune warms up by itself.
        use_cuda_graph: launches follow each other, as in Triton's graphs: ``cold_cache=False``.
        do_bench: refused; use ``triton.autotune(do_bench=ergotune.triton.do_bench("energy"))`` for Triton's own search.
        cache_results: False: nothing is kept on disk.
        space: instead of ``configs``: parameters and their values, of which ``num_warps``, ``num_stages``, ``num_ctas`` and
            ``maxnreg`` are those of ``triton.Config``. The first values are the default configuration.
        restrictions: conditions on parameters, and on ``registers``, ``spilled_registers`` and ``shared_bytes``, as for :func:`tune_callable`.
        reference: function of the kernel's arguments (of those that it names) that writes the outputs, or returns a dict of them by name.
            Without it the outputs of the first configuration that runs are expected.
        verify: False: outputs are not checked.
        absolute_tolerance, relative_tolerance: as for :func:`tune_callable`.
        in_process: False: configurations run in a worker process with copies of the tensors, so that a crash or a hang is the status of one
            of them. The worker imports the module of the kernel (a script needs ``if __name__ == "__main__":``).
        seconds, quiet, settings: as for :func:`tune`: ``objective="energy * time"``, ``budget=30``, ``store="results.db"``. Where the
            objective is the time, ``cold_cache`` is True unless given: the L2 cache is flushed before each launch, as by
            ``triton.testing.do_bench``.
    """
    if do_bench is not None:
        raise TypeError("do_bench: ergotune measures by itself; triton.autotune(do_bench=ergotune.triton.do_bench(objective)) keeps Triton's search")
    if settings.get("device"):
        raise TypeError("device: a kernel is tuned where its tensors are")
    if (configs is None) == (space is None):
        raise TypeError("configs is a list of triton.Config and space a dict of parameters and values: give one of them")
    if space is not None and prune_configs_by:
        raise TypeError("prune_configs_by needs configs; a space has restrictions")
    if warmup is not None:
        warnings.warn("warmup: ignored, since ergotune warms up by itself", stacklevel=2)
    if use_cuda_graph:
        settings.setdefault("cold_cache", False)
    settings.setdefault("max_seconds", 1e-3 * (100 if rep is None else rep))
    settings.setdefault("cold_cache", _flushes(settings.get("objective")))
    how: Dict[str, Any] = {
        **settings, "verify": reference if reference is not None else None if verify else False, "seconds": seconds, "quiet": quiet, "in_process": in_process,
        "restrictions": [restrictions] if isinstance(restrictions, str) or callable(restrictions) else list(restrictions),
        "absolute_tolerance": absolute_tolerance, "relative_tolerance": relative_tolerance}
    hooks = {"reset_to_zero": reset_to_zero, "restore_value": restore_value, "pre_hook": pre_hook, "post_hook": post_hook,
             "prune_configs_by": prune_configs_by}
    declared = _Space(space) if space is not None else None

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(fn, configs or [], key, hooks, declared, cache_results, how)

    return decorate


def _flushes(objective: Optional[str]) -> bool:
    """Energy is measured over launches that follow each other, and what is weighed against it has to be measured alike."""
    return objective in (None, "time")


def do_bench(objective: str = "energy", **settings: Unpack[Settings]) -> Callable[..., Any]:  # type: ignore[misc]
    """For ``triton.autotune(..., do_bench=ergotune.triton.do_bench("energy"))``: Triton's own search by another objective.

    Triton calls the returned function for each configuration. It returns the objective with the ends of its 95 % interval, in SI units.
    Nothing is verified or stored: use :func:`autotune` for that. Do not use it together with ``cache_results=True``: Triton's file does
    not depend on the objective.
    """
    def bench(kernel_call: Callable[[], Any], quantiles: Any = None, **ignored: Any) -> Any:
        import torch

        device = f"{_gpu_backend()}:{torch.cuda.current_device()}" if torch.cuda.is_available() else "host"
        how = {"device": device, "confirm": False, "quiet": True, "cold_cache": _flushes(objective), **settings}
        result = tune_callable(_Call(kernel_call), {"configuration": [0]}, in_process=True, verify=False, name="do_bench",
                               objective=objective, **how)
        best = result.document["best"]
        if not best:
            return [float("inf")] * 3 if quantiles else float("inf")
        value, half_width = best["objective"], best.get("half_width") or 0.0
        return [value, value - half_width, value + half_width] if quantiles else value

    return bench


class _Call:
    """A call without arguments and without a source of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def __call__(self, configuration: int) -> None:
        self._call()
