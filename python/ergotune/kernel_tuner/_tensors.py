"""Arrays among the arguments: NumPy's, and CuPy's and PyTorch's, which on a GPU are used where they are."""

import re
from types import ModuleType

import numpy as np

from .. import _core


class GpuArray:
    """A tensor on a GPU, with as much of NumPy's as is asked of an argument.

    Attributes:
        tensor: the user's object.
        shape, dtype, ndim, size: NumPy's.
        order: "C" or "F", as it lies in memory.
    """

    def __init__(self, tensor, dtype, order):
        self.tensor, self.dtype, self.order = tensor, dtype, order
        self.shape = tuple(int(n) for n in tensor.shape)
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape, dtype=np.int64))

    def host(self):
        """What it holds, as a NumPy array."""
        return _core.tensor_contents(self.tensor).reshape(self.shape, order=self.order)

    def leave(self, contents):
        """Copies a kernel's output into the tensor; gives what Kernel Tuner's run_kernel gives for it."""
        _core.fill_tensor(self.tensor, contents.ravel(self.order))
        return self.tensor.cpu() if _library(self.tensor) == "torch" else self.tensor

    def like(self, contents, answer=None):
        """A NumPy array as one of the tensor's library, where a function that verifies expects it."""
        library = _library(self.tensor)
        if library == "cupy":
            return _module(self.tensor).asarray(contents)
        if library == "torch":
            found = _module(self.tensor).from_numpy(np.array(contents))
            return found.to(answer.device) if hasattr(answer, "device") and _library(answer) == "torch" else found
        return contents


def _library(tensor):
    return type(tensor).__module__.split(".")[0]


def _module(tensor) -> ModuleType:
    return __import__(_library(tensor))


def placed(argument):
    """A GPU's tensor as a GpuArray, an array of another library in the host's memory as NumPy's, anything else as it is."""
    if isinstance(argument, (np.ndarray, np.generic, GpuArray)):
        return argument
    if not (hasattr(argument, "__dlpack__") or hasattr(argument, "__cuda_array_interface__")):
        return argument
    described = _core.describe_tensor(argument)
    return _core.host_array(argument) if described is None else GpuArray(argument, described[0], described[3])


def on_host(argument):
    """An array as NumPy's wherever it is; anything else as it is."""
    argument = placed(argument)
    return argument.host() if isinstance(argument, GpuArray) else argument


def is_array(argument):
    """Whether it is passed as a pointer."""
    return isinstance(argument, GpuArray) or isinstance(argument, np.ndarray) and argument.ndim > 0


def order_of(array):
    """How an array lies in memory: "F" where its first index runs fastest, else "C"."""
    return array.order if isinstance(array, GpuArray) else "F" if array.flags.fnc else "C"


_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def constant_pointers(text, name):
    """Positions of a kernel's parameters that are declared as pointers to const: it does not write what they point to."""
    text = _COMMENTS.sub(" ", text)
    head = re.search(rf"\b{re.escape(name.split('<')[0])}\s*\(([^)]*)\)\s*\{{", text)
    if head is None:
        return set()
    return {i for i, parameter in enumerate(head.group(1).split(","))
            if parameter.count("*") == 1 and re.search(r"\bconst\b", parameter.split("*")[0])}
