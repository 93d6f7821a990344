"""What the results of a callable depend on, as text."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import linecache
import os
import re
import sys
import textwrap
import types
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping

from . import arrays


class _Sources:
    """Sources of functions and of what they call, values that they close over, and the packages that they come from."""

    def __init__(self) -> None:
        self.parts: List[str] = []
        self.packages: Dict[str, None] = {}
        self._seen: Dict[Any, Any] = {}

    def add(self, thing: Any, depth: int = 0) -> None:
        thing = getattr(thing, "__wrapped__", thing)
        if isinstance(thing, functools.partial):
            self.parts.append(f"{describe(thing.args)} {describe(thing.keywords)}")
            thing = thing.func
        for attribute in ("fn", "py_func"):  # Triton's and Numba's
            inner = getattr(thing, attribute, None)
            if callable(inner):
                thing = inner
        if isinstance(thing, types.MethodType):
            thing = thing.__func__
        if id(thing) in self._seen or depth > 8:
            return
        self._seen[id(thing)] = thing
        code = getattr(thing, "__code__", None)
        if code is None and not inspect.isclass(thing):
            self.add(type(thing), depth + 1)
            self.parts.append(describe(vars(thing) if hasattr(thing, "__dict__") else thing))
            return
        module = getattr(thing, "__module__", None) or ""
        if depth > 0 and _is_installed(module):
            self.packages[module.partition(".")[0]] = None
            return
        linecache.checkcache()
        try:
            if getattr(thing, "__name__", "") == "<lambda>":
                raise OSError("its lines hold what surrounds it, such as the budget of a call")
            self.parts.append(textwrap.dedent(inspect.getsource(thing)))
        except (OSError, TypeError):  # python -c, exec
            self.parts.append(_instructions(code) if code else repr(thing))
            self.parts.append(describe([getattr(thing, "__defaults__", None), getattr(thing, "__kwdefaults__", None)]))
        if code is not None:
            self._add_closed(thing, depth)

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
            elif callable(value) and not arrays.is_array(value):
                self.add(value, depth + 1)
            else:
                self.parts.append(f"{name} = {describe(value)}")

    def _add_module(self, module: types.ModuleType, names: FrozenSet[str], depth: int) -> None:
        """Of an installed module its version, of another what the names select."""
        if _is_installed(module.__name__):
            self.packages[module.__name__.partition(".")[0]] = None
        elif (id(module), names) not in self._seen:
            self._seen[id(module), names] = module
            self._add_used({name: value for name, value in vars(module).items() if name in names}, names, depth + 1)


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


def describe(value: Any) -> str:
    """The same text in every process: of arrays type and shape, of others what they hold."""
    if arrays.is_array(value):
        return f"{getattr(value, 'dtype', '')} {tuple(getattr(value, 'shape', ()))}"
    if arrays.is_array(getattr(value, "base", None)):  # a descriptor of a tensor
        return f"{type(value).__name__} of {describe(value.base)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {describe(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(describe, value)) + ")"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(describe, value))) + "}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:500]


@functools.lru_cache(maxsize=None)
def _holds_packages(folder: str) -> bool:
    """Whether pip installed into it, whatever its name."""
    with contextlib.suppress(OSError):
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    return False


def _is_installed(module: str) -> bool:
    place = getattr(sys.modules.get(module), "__file__", None)
    if module in sys.builtin_module_names or (place is None and module != "__main__"):
        return True
    if place is None or "site-packages" in place or "dist-packages" in place or place.startswith(os.path.dirname(os.__file__)):
        return place is not None
    package = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None) or place
    return _holds_packages(os.path.dirname(os.path.dirname(package) if os.path.basename(package).startswith("__init__.") else package))
