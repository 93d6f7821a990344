"""What a callable raised, as the fault of a configuration."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

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


def describe(error: BaseException) -> str:
    """The exception and the place in the user's code where it was raised."""
    text = f"{type(error).__name__}: {error}"
    here = str(Path(__file__).parent)
    frames = [frame for frame in inspect.getinnerframes(error.__traceback__) if not frame.filename.startswith(here)] if error.__traceback__ else []
    return f"{text} ({Path(frames[0].filename).name}, line {frames[0].lineno})" if frames else text


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
