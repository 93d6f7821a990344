"""Tuning on the workers of any ``concurrent.futures.Executor``: processes, Dask, Ray, mpi4py, Parsl.

    with ProcessPoolExecutor(4) as pool:
        ergotune.tune("gemm.toml", device="cuda:0", executor=pool)

Each worker becomes a node (docs/clusters.md): a task runs an agent there, which owns the worker's devices and talks to the session
over one connection that the worker opens. Configurations, results, lost workers, input files, clocks and the store are treated as
those of any other node.
"""

from __future__ import annotations

import contextlib
import ctypes
import hmac
import importlib
import secrets
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _command

Address = Tuple[str, int]

#: s in which a worker reaches an address of the session.
_REACH = 10.0
_PR_SET_PDEATHSIG = 1


def _own_addresses(local: bool) -> List[str]:
    """Where workers may reach this process, likeliest first."""
    if local:
        return ["127.0.0.1"]
    found = [socket.gethostname()]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it selects the address of the default route
        found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found += [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    return [*dict.fromkeys(found), "127.0.0.1"]


def _reach(addresses: Sequence[Address], key: bytes) -> Optional[Connection]:
    """A connection on which both ends have proved that they know the key; None where no session has it any more."""
    for address in addresses:
        try:
            stream = socket.create_connection(address, timeout=_REACH)
            stream.settimeout(None)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(stream.detach())
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            return connection
        except (OSError, EOFError):
            continue
        except Exception:  # another listener has this address there
            continue
    return None


def serve(addresses: Sequence[Address], key: bytes, ticket: bytes) -> bool:
    """What a worker runs: an agent, until its session ends. False where the session did not want it any more."""
    program = _command.existing()
    connection = _reach(addresses, key)
    if connection is None:
        raise OSError(f"this worker cannot reach the session at {', '.join(f'{host}:{port}' for host, port in addresses)}")
    libc = ctypes.CDLL(None)

    def end_with_worker() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    with connection:
        connection.send_bytes(ticket)
        try:
            if connection.recv_bytes(16) != b"welcome":
                return False
        except (OSError, EOFError):
            return False
        agent = subprocess.Popen([program, "agent"], stdin=connection.fileno(), stdout=connection.fileno(), preexec_fn=end_with_worker)
    try:
        agent.wait()
    finally:
        agent.terminate()
        agent.wait()
    return True


class Workers:
    """The workers of an executor as nodes, while a session runs: ``node_commands`` names them."""

    def __init__(self, executor: Executor, count: Optional[int] = None) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor has submit(), as concurrent.futures.Executor has; {executor!r} has not")
        self._executor = executor
        self._count = count or _workers_of(executor)
        self._key = secrets.token_bytes(32)
        self._waiting: Dict[bytes, socket.socket] = {}
        self._futures: List[Future[Any]] = []
        self._lock = threading.Lock()
        self._ended = False

    def __enter__(self) -> List[str]:
        local = type(self._executor).__module__.startswith("concurrent.futures")
        self._listener = socket.create_server(("127.0.0.1" if local else "", 0))
        port = self._listener.getsockname()[1]
        self._addresses = [(host, port) for host in _own_addresses(local)]
        self._folder = tempfile.TemporaryDirectory(prefix="ergotune-workers-")
        path = str(Path(self._folder.name) / "session")
        self._bridges = socket.socket(socket.AF_UNIX)
        self._bridges.bind(path)
        self._bridges.listen()
        for listener, take in ((self._listener, self._take_worker), (self._bridges, self._take_bridge)):
            threading.Thread(target=self._accept, args=(listener, take), daemon=True).start()
        bridge = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_bridge.py")), path]
        return [f"exec {shlex.join(bridge)} {number}" for number in range(self._count)]

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for bridge in waiting:
            bridge.close()
        for listener in (self._listener, self._bridges):
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for future in self._futures:
            future.cancel()
        self._folder.cleanup()

    def _accept(self, listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=take, args=(stream,), daemon=True).start()

    def _take_bridge(self, bridge: socket.socket) -> None:
        """A node is to be started: one task is submitted for it."""
        ticket = secrets.token_hex(16).encode()
        with self._lock:
            if self._ended:
                return bridge.close()
            self._waiting[ticket] = bridge
        try:
            future = self._executor.submit(serve, self._addresses, self._key, ticket)
        except Exception as why:
            return self._give_up(ticket, _refusal(f"the executor takes no task: {type(why).__name__}: {why}"))
        self._futures.append(future)
        future.add_done_callback(lambda done: self._give_up(ticket, _why(done).encode()))

    def _give_up(self, ticket: bytes, why: bytes) -> None:
        with self._lock:
            bridge = self._waiting.pop(ticket, None)
        if bridge:
            with contextlib.suppress(OSError):
                bridge.send(why[:4000])
            bridge.close()

    def _take_worker(self, stream: socket.socket) -> None:
        """A worker is there: its bridge gets the connection. A ticket is good once: an engine that runs a lost task again gets
        another answer."""
        stream.settimeout(_REACH)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.settimeout(None)
        connection = Connection(stream.detach())
        try:
            with connection:
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
                said = connection.recv_bytes(64)
                with self._lock:
                    ticket = next((known for known in self._waiting if hmac.compare_digest(known, said)), None)
                    bridge = self._waiting.pop(ticket) if ticket else None
                if bridge is None:
                    connection.send_bytes(b"too late")
                    return
                with bridge:
                    connection.send_bytes(b"welcome")
                    socket.send_fds(bridge, [b"."], [connection.fileno()])
        except Exception:  # who does not know the key is no worker of ours
            return


def _refusal(why: str) -> bytes:
    """An agent's message that it cannot serve (extensions/cluster/agent_protocol.hpp): the session does not start its node again."""
    text = why.encode()[:3000]
    payload = struct.pack("<?I", False, len(text)) + text
    return b"ERGA" + struct.pack("<BBHI", 1, 8, 0, len(payload)) + payload


def _why(future: Future[Any]) -> str:
    if future.cancelled():
        return "the executor cancelled its task"
    failure = future.exception()
    return f"its task ended: {type(failure).__name__}: {failure}" if failure else "its task ended before it was needed"


def _workers_of(executor: Executor) -> int:
    for name in ("num_workers", "_max_workers", "max_workers"):  # mpi4py, the standard library, Parsl and ours
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    client = getattr(executor, "_client", None)  # Dask
    if client is not None and hasattr(client, "scheduler_info"):
        return max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    raise TypeError(f"{type(executor).__name__} does not report how many workers it has: give workers=")


class RayExecutor(Executor):
    """Ray as an executor: each task takes the resources that ``options`` name, as ``ray.remote`` takes them.

    >>> ergotune.tune("gemm.toml", device="cuda:0", executor=RayExecutor(4, num_gpus=1))   # doctest: +SKIP
    """

    def __init__(self, max_workers: int, **options: Any) -> None:
        ray = importlib.import_module("ray")
        if not ray.is_initialized():
            ray.init()
        self.max_workers = max_workers
        self._ray = ray
        self._remote = ray.remote(_call).options(max_retries=0, **options)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._remote.remote(fn, args, kwargs).future()
        return future


def _call(function: Callable[..., Any], arguments: Sequence[Any], keywords: Dict[str, Any]) -> Any:
    return function(*arguments, **keywords)


__all__ = ["RayExecutor", "Workers", "serve"]
