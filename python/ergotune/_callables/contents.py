"""What the arguments of a callable hold: the arrays in them, and whatever else a launch can change and can be restored."""

from __future__ import annotations

import array
import collections.abc
import functools
import inspect
import io
import os
import pickle
import random
import sys
from collections import deque
from enum import Enum
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from . import arrays

_SEQUENCES = (list, bytearray, array.array)
_CONSTANT = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, Enum, os.PathLike)


class NotRestored(Exception):
    """An argument that the first launch uses up."""


def _random_state(value: Any) -> Optional[Tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Reads and sets the state of a generator of random numbers; None of anything else."""
    value = value.bit_generator if isinstance(value, np.random.Generator) else value
    if isinstance(value, np.random.BitGenerator):
        return lambda: value.state, lambda state: setattr(value, "state", state)
    if isinstance(value, random.Random):
        return value.getstate, value.setstate
    torch = sys.modules.get("torch")
    is_generator = isinstance(value, np.random.RandomState) or (torch is not None and isinstance(value, torch.Generator))
    return (value.get_state, value.set_state) if is_generator else None


def attributes(value: Any) -> Dict[str, Any]:
    slots: List[str] = []
    for kind in type(value).__mro__:
        named = kind.__dict__.get("__slots__", ())
        slots += [named] if isinstance(named, str) else named
    held = {name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__") and hasattr(value, name)}
    return {**held, **getattr(value, "__dict__", {})}


class Holder:
    """A list, dict, set or DataFrame, a generator of random numbers, or an object with attributes, and what it held at first."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self._value = value
        self._state = _random_state(value)
        self._first = self.held()

    def held(self) -> Any:
        if self._state:
            return pickle.dumps(self._state[0]())
        if arrays.is_frame(self._value):
            return self._value.copy()
        return self._value.copy() if isinstance(self._value, set) else dict(self._value) if isinstance(self._value, dict) else \
            self._value[:] if isinstance(self._value, _SEQUENCES) else \
            list(self._value) if isinstance(self._value, deque) else attributes(self._value)

    def changed(self) -> bool:
        if arrays.is_frame(self._value):
            return not self._value.equals(self._first)
        now, first = self.held(), self._first
        if isinstance(now, dict):
            now, first = [*now, *now.values()], [*first, *first.values()]
        if isinstance(now, list):
            return len(now) != len(first) or any(one is not other for one, other in zip(now, first))
        return bool(now != first)

    def restore(self) -> None:
        if not self.changed():
            return
        value, first = self._value, self._first
        if self._state:
            self._state[1](pickle.loads(first))
        elif arrays.is_frame(value):
            value.__init__(first.copy())
        elif isinstance(value, (dict, set)):
            value.clear()
            value.update(first)
        elif isinstance(value, deque):
            value.clear()
            value.extend(first)
        elif isinstance(value, _SEQUENCES):
            value[:] = first
        else:
            for name in attributes(value).keys() - first.keys():
                object.__delattr__(value, name)
            for name, held in first.items():
                object.__setattr__(value, name, held)


class Cache(Holder):
    """The results that a function has remembered (functools.cache): each launch begins with none."""

    def __init__(self, clear: Callable[[], Any]) -> None:
        self._clear = clear

    def restore(self) -> None:
        self._clear()


def caches_of(function: Any) -> List[Holder]:
    """Not those of functions that it calls, which may keep compiled kernels."""
    while isinstance(function, functools.partial):
        function = function.func
    clear = getattr(function, "cache_clear", None)  # of a bound method that of its function
    return [Cache(clear)] if callable(clear) else []


def found_in(given: Iterable[Tuple[Any, Any]]) -> Iterator[Tuple[Any, Any]]:
    """Arrays and what else can change among arguments and in what they hold, each once: its name (of what an argument holds the path to
    it, such as "state.rows[0]") and itself."""
    left = list(given)[::-1]
    seen: Dict[int, Any] = {}
    while left:
        name, value = left.pop()
        if isinstance(value, _CONSTANT) or id(value) in seen:
            continue
        seen[id(value)] = value
        if arrays.is_array(value):
            yield name, value
            continue
        inside: List[Tuple[str, Any]] = []
        if isinstance(value, dict):
            inside = [(f"{name}[{key!r}]", item) for key, item in value.items()]
        elif isinstance(value, (list, tuple, deque)):
            inside = [(f"{name}[{number}]", item) for number, item in enumerate(value)]
        elif isinstance(value, (set, bytearray, array.array)) or _random_state(value) or arrays.is_frame(value):
            pass
        elif inspect.ismodule(value) or callable(value):
            continue  # a function, a compiled kernel or a model keeps what it has cached
        elif held := attributes(value):
            inside = [(f"{name}.{key}", item) for key, item in held.items()]
        elif isinstance(value, collections.abc.Iterator) and not isinstance(value, io.IOBase):
            raise NotRestored(f"the argument {name!r} is an iterator ({type(value).__name__}), which the first launch uses up: give a list")
        else:
            continue
        left += inside[::-1]
        if not isinstance(value, tuple):
            yield name, value
