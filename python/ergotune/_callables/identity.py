"""What the results of a callable depend on, as text."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import itertools
import linecache
import os
import re
import sys
import textwrap
import types
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Tuple

from . import arrays
from .contents import attributes


#: Functions in descriptors: properties, methods of classes, functools.cached_property and functools.partialmethod.
_FUNCTIONS = ("fget", "fset", "fdel", "__func__", "func")
#: How far references are followed, and how many items of a container.
_DEPTH, _ITEMS = 50, 1000


class _Sources:
    """Sources of functions and of what they refer to, values that they use, and the packages that they come from."""

    def __init__(self) -> None:
        self.parts: List[str] = []
        self.packages: Dict[str, None] = {}
        self._seen: Dict[Any, Any] = {}
        linecache.checkcache()

    def add(self, thing: Any, depth: int = 0) -> None:
        if not self._is_new(id(thing), thing, depth):
            return
        if isinstance(thing, types.MethodType):
            self._add_held(thing.__self__, depth)
            return self.add(thing.__func__, depth)
        if isinstance(thing, functools.partial):
            self._add_value("arguments", [thing.args, thing.keywords], depth)
            return self.add(thing.func, depth)
        wrapped = _wrapped(thing)
        if wrapped is not None:
            return self.add(wrapped, depth + 1)
        code: Any = getattr(thing, "__code__", None) if hasattr(type(thing), "__code__") else None  # some objects have every attribute
        if code is None and not inspect.isclass(thing):
            self.add(type(thing), depth + 1)
            return self._add_value("object", attributes(thing) or thing, depth)
        module = _module_of(thing) if inspect.isfunction(thing) else getattr(thing, "__module__", None) or ""
        if depth > 0 and _is_installed(module):
            self.packages[module.partition(".")[0]] = None
            return
        try:
            if code and code.co_name == "<lambda>":
                raise OSError("its lines hold what surrounds it, such as the budget of a call")
            is_wrapper = inspect.isfunction(thing) and hasattr(thing, "__wrapped__")  # of which inspect.getsource finds what it wraps
            self.parts.append(textwrap.dedent(inspect.getsource(types.FunctionType(code, thing.__globals__) if is_wrapper else thing)))
        except (OSError, TypeError):  # python -c, exec
            self.parts.append(_instructions(code) if code else describe(thing))
        if code is None:
            return self._add_class(thing, depth)
        self._add_value("defaults", [getattr(thing, "__defaults__", None), getattr(thing, "__kwdefaults__", None)], depth)
        self._add_closed(thing, depth)

    def _is_new(self, key: Any, thing: Any, depth: int) -> bool:
        if key in self._seen or depth > _DEPTH:
            return False
        self._seen[key] = thing
        return True

    def _add_class(self, kind: type, depth: int) -> None:
        for base in kind.__mro__[1:]:
            self.add(base, depth + 1)
        for name, value in sorted(vars(kind).items()):
            functions = [part for part in (value, *(getattr(value, part, None) for part in _FUNCTIONS)) if inspect.isroutine(part)]
            for function in functions:
                self.add(function, depth + 1)
            if not functions and not name.startswith("__"):
                self._add_used({name: value}, frozenset(), depth)

    def _add_value(self, name: str, value: Any, depth: int) -> None:
        self.parts.append(f"{name} = {describe(value)}")
        self._add_held(value, depth)

    def _add_held(self, value: Any, depth: int) -> None:
        """Functions, classes and objects of the user's classes that a value is or contains."""
        if _is_array(value):
            return
        if callable(value) or not _is_installed(type(value).__module__):
            self.add(value, depth + 1)
        if not isinstance(value, (Mapping, list, tuple, set, frozenset)) or not self._is_new(("items", id(value)), value, depth):
            return
        before = len(self.parts)
        for item in itertools.islice(value.items() if isinstance(value, Mapping) else value, _ITEMS):
            self._add_held(item, depth + 1)
        if isinstance(value, (set, frozenset)):
            self.parts[before:] = sorted(self.parts[before:])

    def _add_closed(self, function: Any, depth: int) -> None:
        """Of functions of Cython, too, which have code but are not Python's."""
        names = frozenset(_names(function.__code__))
        every = getattr(function, "__globals__", {})
        used = {name: every[name] for name in names if name in every}
        for name, cell in zip(function.__code__.co_freevars, getattr(function, "__closure__", None) or ()):
            with contextlib.suppress(ValueError):  # it is not set yet
                used[name] = cell.cell_contents
        self._add_used(used, names, depth)

    def _add_used(self, used: Mapping[str, Any], names: FrozenSet[str], depth: int) -> None:
        for name, value in sorted(used.items()):
            if inspect.ismodule(value):
                self._add_module(value, names, depth)
            elif callable(value) and not _is_array(value):
                self.add(value, depth + 1)
            else:
                self._add_value(name, value, depth)

    def _add_module(self, module: types.ModuleType, names: FrozenSet[str], depth: int) -> None:
        """Of an installed module its version, of another what the names select."""
        if _is_installed(module.__name__):
            self.packages[module.__name__.partition(".")[0]] = None
        elif (id(module), names) not in self._seen:
            self._seen[id(module), names] = module
            self._add_used({name: value for name, value in vars(module).items() if name in names}, names, depth + 1)


def _module_of(function: Any) -> str:
    """Where its code is: functools.wraps copies __module__ of another function."""
    return str(function.__globals__.get("__name__", ""))


def _wrapped(thing: Any) -> Any:
    """What a package's decorator, such as functools.cache, Triton's or Numba's jit, was applied to. What a decorator of the user's makes is code that
    refers to what it was applied to."""
    if _is_installed(_module_of(thing) if inspect.isfunction(thing) else type(thing).__module__):
        return next(filter(callable, (getattr(thing, name, None) for name in ("__wrapped__", "fn", "py_func"))), None)
    return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Globals and attributes that the code and the functions in it name."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _instructions(code: types.CodeType) -> str:
    constants = [_instructions(constant) if isinstance(constant, types.CodeType) else describe(constant) for constant in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def fingerprint(function: Any) -> str:
    """What the results of a function depend on, as a hash; empty where that cannot be found out."""
    try:
        return hashlib.sha256(identity((function,), (), "").encode()).hexdigest()[:16]
    except Exception:  # whatever the objects that it uses raise
        return ""


def identity(functions: Iterable[Any], arguments: Any, version: str) -> str:
    sources = _Sources()
    for function in functions:
        if callable(function):
            sources.add(function)
    parts = [f"version: {version}"] * bool(version) + sources.parts
    items = arguments.items() if isinstance(arguments, Mapping) else enumerate(arguments if isinstance(arguments, (tuple, list)) else [arguments])
    parts += [f"argument {key}: {describe(value)}" for key, value in items if value is not None]
    for name in sorted(sources.packages):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{name} {importlib.metadata.version(name)}")
    parts.append(f"Python {sys.version_info[0]}.{sys.version_info[1]}")
    return "\n".join(parts)


def describe(value: Any, outer: Tuple[int, ...] = ()) -> str:
    """The same text in every process: of arrays type and shape, of others what they hold. ``outer``: the containers that this value is in, by id."""
    if id(value) in outer:
        return "..."
    inner = functools.partial(describe, outer=(*outer, id(value)))
    if _is_array(value):
        return f"{getattr(value, 'dtype', '')} {tuple(getattr(value, 'shape', ()))}"
    base = getattr(value, "__dict__", {}).get("base")
    if _is_array(base):  # a descriptor of a tensor
        return f"{type(value).__name__} of {describe(base)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{inner(key)}: {inner(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(inner, value)) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(inner, value))) + "}"
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value)).replace("__mp_main__", "__main__")[:500]  # a worker imports the script by this name


def _is_array(value: Any) -> bool:
    with contextlib.suppress(Exception):  # objects may have every attribute, or raise something else for one that they lack
        return arrays.is_array(value) and isinstance(tuple(getattr(value, "shape", ())), tuple)
    return False


@functools.lru_cache(maxsize=None)
def _holds_packages(folder: str) -> bool:
    """Whether pip installed into it, whatever its name."""
    with contextlib.suppress(OSError):
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    return False


def _is_installed(module: str) -> bool:
    place = getattr(sys.modules.get(module), "__file__", None)
    if module.partition(".")[0] == __name__.partition(".")[0] or module in sys.builtin_module_names or (place is None and module != "__main__"):
        return True
    if place is None or "site-packages" in place or "dist-packages" in place or place.startswith(os.path.dirname(os.__file__)):
        return place is not None
    package = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None) or place
    return _holds_packages(os.path.dirname(os.path.dirname(package) if os.path.basename(package).startswith("__init__.") else package))
