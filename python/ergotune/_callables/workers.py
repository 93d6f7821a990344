"""Where a callable runs: in worker processes that get it pickled, or in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .. import _command, _core
from .identity import fingerprint
from .session import Fault, Session, Work, compile_beforehand, describe

#: Set while a worker imports the main module: to tune then would begin it all over again.
importing_main = False


class _Compiling:
    """In a compile worker: nothing is loaded unless there is something to do."""

    def __init__(self, work: Callable[[], Work]) -> None:
        self._load = functools.lru_cache(maxsize=1)(work)

    def compile(self, texts: str) -> None:
        compile_beforehand(self._load(), json.loads(texts))


class _Hook:
    """What the native half asks for a session when it opens a device: the first one is the callable's."""

    def __init__(self, work: Callable[[], Work]) -> None:
        self._work = work
        self._open = True
        self.session: Optional[Session] = None

    def open_device(self, device: str, is_cpu: bool, queue: int) -> Optional[Session]:
        if not self._open:
            return None
        self._open = False
        self.session = Session(self._work(), device, is_cpu, queue)
        return self.session

    def open_compiler(self, device: str) -> Optional[_Compiling]:
        return _Compiling(self._work) if self._open else None

    def close(self) -> None:
        self._open = False


@contextlib.contextmanager
def in_this_process(work: Work) -> Iterator[None]:
    hook = _Hook(lambda: work)
    _core.set_device_hook(hook)
    try:
        yield
    finally:
        _core.set_device_hook(None)
        if hook.session:
            hook.session.close()


@contextlib.contextmanager
def in_workers(folder: str) -> Iterator[None]:
    code = f"import sys; sys.path[:] = {sys.path!r}; from ergotune._callables.workers import serve; serve({folder!r})"
    token = _command.worker_in_place.set([sys.executable, "-c", code])
    try:
        yield
    finally:
        _command.worker_in_place.reset(token)


def send(work: Work, folder: str, limit: Tuple[float, str]) -> Optional[str]:
    """Writes what workers need; the reason where they cannot have it."""
    work = dataclasses.replace(work, limit=limit)
    main = _main_module()
    fingerprints = _fingerprints(work)
    try:
        try:
            data = pickle.dumps(work)
        except Exception:
            data = b""
        if not data or (b"__main__" in data and main is None):
            import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]

            data = cloudpickle.dumps(work)
            fingerprints = []  # it sends functions of the script with the globals that they use, and without their source
    except ImportError:
        return ("functions of a notebook, lambdas and local functions go to another process with the package cloudpickle only "
                "(pip install cloudpickle)")
    except Exception as error:
        return f"it cannot be pickled ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
    (Path(folder) / "work.pickle").write_bytes(data)
    needs_main = b"__main__" in data or b"__mp_main__" in data
    (Path(folder) / "main.pickle").write_bytes(pickle.dumps((main if needs_main else None, fingerprints)))
    return None


def _fingerprints(work: Work) -> List[str]:
    return [fingerprint(called) if callable(called) else "" for called in (work.function, work.setup, work.verify)]


def _main_module() -> Optional[Dict[str, Any]]:
    """How a new process gets the main module of this process, as multiprocessing does it; None where it cannot."""
    from multiprocessing import spawn

    main = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is None and not os.path.exists(getattr(main, "__file__", None) or ""):
        return None
    given = spawn.get_preparation_data("ergotune")
    return {name: given[name] for name in ("sys_path", "sys_argv", "dir", "orig_dir", "init_main_from_name", "init_main_from_path") if name in given}


def serve(folder: str) -> None:
    """A worker's main function; the session appends --descriptor and --log."""
    arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    _core.set_device_hook(_Hook(functools.partial(_load, folder)))
    _core.run_worker(int(arguments["--descriptor"]), int(arguments.get("--log", -1)))


def _load(folder: str) -> Work:
    global importing_main
    main, fingerprints = pickle.loads((Path(folder) / "main.pickle").read_bytes())
    if main:
        from multiprocessing import spawn

        importing_main = True
        try:
            spawn.prepare(main)
        except Exception as error:
            raise Fault("user", f"a worker process cannot import the script: {describe(error)}") from error
        finally:
            importing_main = False
    _core.begin_allocation_limits()  # before arguments are read, which a program has without
    try:
        work = pickle.loads((Path(folder) / "work.pickle").read_bytes())
    except Exception as error:
        raise Fault("user", f"the callable cannot be loaded in a worker process: {describe(error)}; in_process=True runs it in this "
                    "one") from error
    assert isinstance(work, Work)
    if main and fingerprints and _fingerprints(work) != fingerprints:
        work = dataclasses.replace(work, note="the function, or what it uses, is another one in the worker process: what the script sets after it was "
                                   "imported, such as a global, has its first value there; give it as an argument, or use in_process=True")
    return work
