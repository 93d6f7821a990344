"""Compiles Triton kernels in forked processes: most of a compilation holds Python's global lock, so that threads wait for each other."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import select
import signal
import warnings
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Callable, List, NoReturn, Sequence, Tuple

#: Without a compilation that ends for so many seconds the processes are stopped: threads of this process may have held locks when it forked.
PATIENCE = 60.0


class ForkedCompiles(Executor):
    """For ``triton.AsyncCompileMode``: where this context ends, what was submitted is compiled in forked processes, into the cache on disk, and
    read from there. What a process does not compile, because it fails or ends, is compiled in this process."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._given: List[Tuple[Callable[[], Any], Future[Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._given.append((functools.partial(fn, *args, **kwargs), future))
        return future

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._run()
        finally:
            for _, future in self._given:
                if future.cancel():  # it has no result
                    future.set_running_or_notify_cancel()

    def _run(self) -> None:
        missing = [compiled for compiled, future in self._given if not is_cached(getattr(future, "_key", None))]
        if min(self._jobs, len(missing)) > 1 and hasattr(os, "fork"):
            _compile_in_processes(missing, min(self._jobs, len(missing)))
        with ThreadPoolExecutor(self._jobs) as pool:
            for compiled, future in self._given:
                pool.submit(_settle, compiled, future)


def is_cached(key: Any) -> bool:
    """Whether Triton's cache on disk has the code of this key (a text). False where this cannot be found out."""
    try:
        from triton.runtime.cache import get_cache_manager  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return any(name.startswith("__grp__") for name in os.listdir(get_cache_manager(hashlib.sha256(key.encode()).hexdigest()).cache_dir))
    except Exception:  # another version of Triton, or another manager of its cache
        return False


def _settle(compiled: Callable[[], Any], future: Future[Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(compiled())
        except BaseException as error:
            future.set_exception(error)


def _compile_in_processes(compilations: Sequence[Callable[[], Any]], count: int) -> None:
    children: List[int] = []
    ended, write = os.pipe()
    try:
        for number in range(count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads: hence PATIENCE
                child = os.fork()
            if child == 0:
                _compile_and_exit(compilations[number::count], write)
            children.append(child)
        os.close(write)
        write = -1
        while select.select([ended], [], [], PATIENCE)[0] and os.read(ended, 1):
            pass
    finally:
        for descriptor in (ended, write):
            if descriptor >= 0:
                os.close(descriptor)
        for child in children:
            with contextlib.suppress(OSError):  # another thread may have waited for it
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _compile_and_exit(compilations: Sequence[Callable[[], Any]], ended: int) -> NoReturn:
    try:
        gc.disable()  # destructors of the application's objects may use the GPU
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        for compiled in compilations:
            with contextlib.suppress(Exception):
                compiled()
            os.write(ended, b".")
    finally:
        os._exit(0)
