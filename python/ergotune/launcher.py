"""Tuned kernels in applications: the launcher's library (libergotune-launcher) from Python.

    from ergotune.launcher import Kernel

    heat = Kernel("heat.toml", wisdom="wisdom")
    heat(queue, width, height, 0.2, now, next)

A queue is PyOpenCL's, a CUDA stream of CuPy or PyTorch, a number, or None for CUDA's default stream. Buffers are PyOpenCL's, or arrays
of CuPy, PyTorch, Numba or JAX on the device. Nothing else of ergotune is loaded, and nothing is copied.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import typing

__all__ = ["Kernel", "LaunchError"]


class LaunchError(RuntimeError):
    """The message of a failed call; `code` is the driver's, or -1000 for a mistake of the caller's."""

    def __init__(self, message: str, code: int = -1000) -> None:
        super().__init__(message)
        self.code = code


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t), ("backend", ctypes.c_char_p), ("kernel", ctypes.c_char_p), ("wisdom", ctypes.c_char_p),
        ("constants", ctypes.c_char_p), ("objective", ctypes.c_char_p), ("cache", ctypes.c_char_p), ("background", ctypes.c_int),
        ("warn", ctypes.c_void_p), ("data", ctypes.c_void_p), ("clocks", ctypes.c_int), ("online", ctypes.c_double),
    ]


class _Argument(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("size", ctypes.c_size_t)]


_WARN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_SCALARS: dict[str, typing.Any] = {
    "int8": ctypes.c_int8, "uint8": ctypes.c_uint8, "int16": ctypes.c_int16, "uint16": ctypes.c_uint16, "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32, "int64": ctypes.c_int64, "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}
_library: typing.Any = None


def _open_library() -> typing.Any:
    global _library
    if _library is not None:
        return _library
    beside = pathlib.Path(__file__).parent.absolute() / "libergotune-launcher.so.0"
    named = os.environ.get("ERGOTUNE_LAUNCHER")
    names = [named] if named else [str(beside), "libergotune-launcher.so.0"]
    reasons = []
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError as error:
            reasons.append(str(error))
    else:
        raise LaunchError("libergotune-launcher cannot be opened (ERGOTUNE_LAUNCHER names another): " + "; ".join(reasons))
    library.ergotune_kernel_open.restype = ctypes.c_void_p
    library.ergotune_kernel_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Options)]
    library.ergotune_kernel_open_text.restype = ctypes.c_void_p
    library.ergotune_kernel_open_text.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Options)]
    library.ergotune_kernel_close.argtypes = [ctypes.c_void_p]
    library.ergotune_kernel_close.restype = None
    library.ergotune_kernel_reload.argtypes = [ctypes.c_void_p]
    library.ergotune_error.restype = ctypes.c_char_p
    library.ergotune_kernel_signature.restype = ctypes.c_char_p
    library.ergotune_kernel_signature.argtypes = [ctypes.c_void_p]
    for name in ("launch", "prepare", "why"):
        getattr(library, f"ergotune_kernel_{name}").argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Argument), ctypes.c_size_t]
    library.ergotune_kernel_why.restype = ctypes.c_char_p
    _library = library
    return library


def _address(thing: typing.Any, what: str) -> int:
    """The driver's handle of a queue or a buffer."""
    if thing is None or isinstance(thing, int):
        return thing or 0
    for name in ("int_ptr", "cuda_stream", "ptr"):  # PyOpenCL; PyTorch's streams; CuPy's streams and memory
        handle = getattr(thing, name, None)
        if isinstance(handle, int):
            return handle
    if hasattr(thing, "data_ptr"):  # PyTorch's tensors
        return int(thing.data_ptr())
    if hasattr(thing, "__cuda_array_interface__"):
        return int(thing.__cuda_array_interface__["data"][0])
    if hasattr(getattr(thing, "base_data", None), "int_ptr"):  # pyopencl.array.Array
        return int(thing.base_data.int_ptr)
    raise LaunchError(f"{what} is a {type(thing).__name__}, which has no address on a device")


def _number(given: typing.Any, kind: str, place: int) -> typing.Any:
    integer = kind.startswith(("int", "uint"))
    try:
        number = int(given) if integer else float(given)
        fits = not isinstance(given, (str, bytes)) and (not integer or number == given)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if fits and integer:  # ctypes would drop the upper bits
        bits = 8 * ctypes.sizeof(_SCALARS[kind])
        lowest = -(1 << bits - 1) if kind.startswith("int") else 0
        if not lowest <= number < lowest + (1 << bits):
            raise LaunchError(f"argument {place} is {given!r}, which is no {kind} ({lowest} to {lowest + (1 << bits) - 1}); "
                              "arguments are counted from 1 after the queue")
    if not fits:
        raise LaunchError(f"argument {place} is {given!r}, and the problem has {kind}; arguments are counted from 1 after the queue")
    return number


class Kernel:
    """A kernel that runs tuned; `problem` is a problem file's path, or its text where `folder` says what paths in it start at.

    `wisdom`: folders to choose from (default: $ERGOTUNE_WISDOM, else "wisdom" beside the problem file); `constants`: values of
    the problem's constants; `background`: a thread of the launcher's compiles, and the default runs meanwhile; `warn`: told what
    goes wrong without ending anything; `clocks`: clocks and limits of the wisdom are in force while this process lives; `online`: bound of online
    tuning (0.05: all launches take at most 5 % longer), 0: $ERGOTUNE_ONLINE. Raises LaunchError.
    """

    _kernel: typing.Any = None  # close() needs it also where __init__ was refused its arguments

    def __init__(self, problem: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None,
                 wisdom: str | os.PathLike[str] | typing.Sequence[str | os.PathLike[str]] | None = None, backend: str | None = None, kernel: str | None = None,
                 constants: typing.Mapping[str, typing.Any] | None = None, objective: str | None = None,
                 cache: str | os.PathLike[str] | None = None, background: bool = False,
                 warn: typing.Callable[[str], None] | None = None, clocks: bool = False,
                 online: float = 0) -> None:
        self._library = _open_library()

        def text(value: typing.Any) -> bytes | None:
            return None if value is None else os.fspath(value).encode()

        if wisdom is not None and not isinstance(wisdom, (str, os.PathLike)):
            wisdom = ":".join(os.fspath(each) for each in wisdom)
        given = ",".join(f"{name}={value}" for name, value in (constants or {}).items())
        options = _Options(ctypes.sizeof(_Options), text(backend), text(kernel), text(wisdom), text(given or None), text(objective), text(cache),
                           int(background), None, None, int(clocks), online)
        if warn is not None:
            tell = warn
            self._warn = _WARN(lambda message, _: tell(message.decode(errors="replace")))  # kept: the library calls it
            options.warn = ctypes.cast(self._warn, ctypes.c_void_p)
        if folder is None:
            self._kernel = self._library.ergotune_kernel_open(text(problem), ctypes.byref(options))
        else:
            self._kernel = self._library.ergotune_kernel_open_text(text(problem), text(folder), ctypes.byref(options))
        if not self._kernel:
            raise self._error(-1000)
        self._signature: list[str] = self._library.ergotune_kernel_signature(self._kernel).decode().split()

    def _error(self, code: int) -> LaunchError:
        return LaunchError(self._library.ergotune_error().decode(errors="replace"), code)

    def _arguments(self, arguments: tuple[typing.Any, ...]) -> tuple[typing.Any, list[typing.Any]]:
        if len(arguments) != len(self._signature):
            raise LaunchError(f"the kernel takes {len(self._signature)} arguments ({', '.join(self._signature)}), and was given "
                              f"{len(arguments)} after the first, which is the queue or stream (None: CUDA's default stream)")
        values: list[typing.Any] = []
        for i, (kind, given) in enumerate(zip(self._signature, arguments)):
            if kind == "*":
                values.append(ctypes.c_void_p(_address(given, f"argument {i + 1}")))
            elif kind in _SCALARS:
                values.append(_SCALARS[kind](_number(given, kind, i + 1)))
            else:  # a structure, or half precision: its bytes
                values.append((ctypes.c_char * len(bytes(given))).from_buffer_copy(bytes(given)))
        array = (_Argument * max(1, len(values)))()
        for entry, value in zip(array, values):
            entry.address, entry.size = ctypes.addressof(value), ctypes.sizeof(value)
        return array, values

    def _call(self, name: str, queue: typing.Any, arguments: tuple[typing.Any, ...]) -> typing.Any:
        array, kept = self._arguments(arguments)
        answer = getattr(self._library, f"ergotune_kernel_{name}")(self._kernel, _address(queue, "the queue"), array, len(kept))
        return answer

    def __call__(self, queue: typing.Any, *arguments: typing.Any) -> None:
        """Queues a launch. Buffers must live until it is done, as for any launch."""
        if code := self._call("launch", queue, arguments):
            raise self._error(code)

    def prepare(self, queue: typing.Any, *arguments: typing.Any) -> None:
        """Compiles and loads what such a launch needs, and waits for it."""
        if code := self._call("prepare", queue, arguments):
            raise self._error(code)

    def why(self, queue: typing.Any, *arguments: typing.Any) -> dict[str, typing.Any]:
        """What such a launch runs, and why: configuration, execution, reason, match, distance, is_default."""
        answer = self._call("why", queue, arguments)
        if answer is None:
            raise self._error(-1000)
        found: dict[str, typing.Any] = json.loads(answer)
        return found

    def reload(self) -> None:
        """Reads the wisdom anew: the next launches choose again."""
        if code := self._library.ergotune_kernel_reload(self._kernel):
            raise self._error(code)

    def close(self) -> None:
        if self._kernel:
            self._library.ergotune_kernel_close(self._kernel)
            self._kernel = None

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: typing.Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
