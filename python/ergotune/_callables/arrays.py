"""Arrays of whatever framework a callable uses: copied, filled, compared. No framework is imported that is not there already."""

from __future__ import annotations

import contextlib
import functools
import numbers
import sys
import zlib
from copy import deepcopy
from enum import Enum
from typing import Any, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from .. import _core

#: Elements of an output that is compared in another order as well.
_MOST_SORTED = 1 << 17
#: Relative tolerances where none is given, by the bits of the significand.
_TOLERANCES = ((52, 1e-6), (23, 1e-4), (10, 1e-2), (7, 2e-2), (0, 0.15))


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_torch(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def _is_cupy(value: Any) -> bool:
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(value, cupy.ndarray)


def _is_foreign(value: Any) -> bool:
    """On a GPU, of another framework (Numba, PyCUDA, JAX)."""
    return hasattr(value, "__cuda_array_interface__")


def _is_numba(value: Any) -> bool:
    return hasattr(value, "copy_to_device")


def _is_pycuda(value: Any) -> bool:
    return hasattr(value, "gpudata")


def is_frame(value: Any) -> bool:
    """A DataFrame of pandas."""
    return "pandas" in sys.modules and isinstance(value, sys.modules["pandas"].DataFrame)


def is_array(value: Any) -> bool:
    if is_frame(value):
        return False
    return isinstance(value, np.ndarray) or _is_torch(value) or _is_cupy(value) or _is_foreign(value) or (
        not isinstance(value, (np.generic, type)) and hasattr(value, "__array__") and hasattr(value, "shape"))


def copy(value: Any) -> Any:
    """Its contents now, in memory of the same kind where possible."""
    if _is_torch(value):
        return value.detach().clone()
    if isinstance(value, np.ndarray) or _is_cupy(value):
        return value.copy()
    if _is_foreign(value):
        return _core.tensor_contents(value)
    return np.array(value)


def saved(value: Any) -> Any:
    """What fill() restores it from: a copy where the array is, also of Numba's and PyCUDA's, which copy() brings to the host."""
    if _is_numba(value):
        kept = sys.modules["numba.cuda"].device_array_like(value)
        kept.copy_to_device(value)
        return kept
    return value.copy() if _is_pycuda(value) else copy(value)


def _fill_numba(value: Any, contents: Any) -> None:
    """As copy_to_device does it, without its checks of layouts, which saved() has made and which take longer than copying 16 MiB."""
    driver = sys.modules.get("numba.cuda.cudadrv.driver")
    if driver is None or not _is_foreign(value) or not value.size:  # the simulator, for example
        value.copy_to_device(contents)
        return
    sys.modules["numba.cuda"].current_context()  # makes it current in this thread
    driver.device_to_device(value, contents, value.alloc_size, stream=value.stream)


def fill(value: Any, contents: Any) -> None:
    """Contents that copy() or saved() gave. What cannot be written (JAX) cannot have changed either."""
    if _is_torch(value):
        torch = _torch()
        with torch.no_grad():
            value.copy_(contents)
    elif isinstance(value, np.ndarray):
        if value.flags.writeable:
            value[...] = contents
    elif _is_cupy(value):
        value[...] = contents
    elif _is_numba(value) and _is_numba(contents):
        _fill_numba(value, contents)
    elif _is_pycuda(value) and _is_pycuda(contents):
        value[...] = contents
    elif _is_foreign(value):
        described = _core.describe_tensor(value)
        if described and not described[2]:
            _core.fill_tensor(value, contents)
    elif hasattr(value, "__setitem__"):
        with contextlib.suppress(TypeError):
            value[...] = contents


def contents_hash(arguments: Any) -> str:
    """Of at most 4 MiB of each array of the host; empty where there is none."""
    values = arguments.values() if isinstance(arguments, Mapping) else arguments if isinstance(arguments, (tuple, list)) else [arguments]
    sums = []
    for value in values:
        if _is_torch(value) and value.device.type == "cpu" and value.is_contiguous():
            value = value.detach().reshape(-1).view(_torch().uint8).numpy()
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and (value.flags.c_contiguous or value.flags.f_contiguous):
            sums.append(zlib.crc32(value.reshape(-1, order="A").view(np.uint8)[: 4 << 20].tobytes()))
    return " ".join(f"{one:08x}" for one in sums)


def leaves(value: Any, copied: bool = False) -> List[Any]:
    """What is in tuples, lists and dicts; nothing where a function returned None."""
    return [] if value is None else _leaves(value, copied)


def _leaves(value: Any, copied: bool) -> List[Any]:
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value, key=str) for leaf in _leaves(value[key], copied)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item, copied)]
    if copied and is_array(value):
        return [copy(value)]
    if copied and not has_no_equality(value):
        with contextlib.suppress(Exception):  # what cannot be copied is compared as it is by then
            return [deepcopy(value)]
    return [value]


def is_numeric(value: Any) -> bool:
    """An array or a number: compared with tolerances."""
    return is_array(value) or isinstance(value, (numbers.Number, np.generic))


def has_no_equality(value: Any) -> bool:
    """Whether == only says that it is the same object."""
    return getattr(type(value), "__eq__") is object.__eq__ and not isinstance(value, Enum)


def equal(one: Any, other: Any) -> Optional[bool]:
    """As == has it; None where that is no answer."""
    if has_no_equality(one) or has_no_equality(other):
        return True if one is other else None
    try:
        answer = one == other
    except Exception:
        return None
    return bool(answer) if isinstance(answer, (bool, np.bool_)) else None


def _equal_elements(one: Any, other: Any) -> bool:
    """Of text, dates and objects."""
    if np.array_equal(one, other):
        return True
    with contextlib.suppress(Exception):
        return bool(((one == other) | ((one != one) & (other != other))).all())
    return False


def _mask_differs(one: Any, other: Any) -> bool:
    masked = isinstance(one, np.ma.MaskedArray) or isinstance(other, np.ma.MaskedArray)
    return masked and not np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other))


def _unmasked(value: Any) -> Any:
    """With zeros for masked elements, which may hold anything."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    zero: Any = np.zeros((), value.dtype)
    return value.filled(zero)


def _host(value: Any) -> Any:
    if _is_torch(value):
        value = value.detach().cpu()
        return (value if value.dtype in (_torch().float64, _torch().float32, _torch().float16) or not value.is_floating_point()
                else value.float()).numpy()
    if _is_cupy(value):
        return value.get()
    return _core.tensor_contents(value) if _is_foreign(value) else np.asarray(value)


def same(one: Any, other: Any) -> bool:
    """Bit by bit, but that NaN equals NaN."""
    if _mask_differs(one, other):
        return False
    one, other = _unmasked(one), _unmasked(other)
    if _is_torch(one):
        if one.is_floating_point() and one.element_size() == 1:
            one, other = one.view(_torch().uint8), other.view(_torch().uint8)
    if (_is_torch(one) and _is_torch(other)) or (_is_cupy(one) and _is_cupy(other)):
        return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
    return bool(np.array_equal(_host(one), _host(other), equal_nan=_host(one).dtype.kind in "fc"))


def has_numbers(value: Any) -> bool:
    """Whether an element is neither NaN nor infinite; computed where the array is."""
    if _is_torch(value) and value.element_size() == 1:
        return True
    value = value if _is_torch(value) or _is_cupy(value) else _host(value)
    if not _is_torch(value) and value.dtype.kind not in "fc":
        return True
    with np.errstate(all="ignore"):
        return _size(value) == 0 or bool((value - value == 0).any())


def clear(value: Any) -> None:
    """Fills it with zeros."""
    if _is_torch(value):
        with _torch().no_grad():
            value.zero_()
    else:
        fill(value, np.zeros_like(_host(value)) if not _is_cupy(value) else 0)


def _significand(value: Any) -> Optional[int]:
    """Bits of its significand; None of whole numbers."""
    kind = value.dtype
    if _is_torch(value):
        if value.is_complex() or value.is_floating_point():
            return int(round(-np.log2(_torch().finfo(kind).eps)))
        return None
    kind = np.dtype(kind)
    return np.finfo(kind).nmant if kind.kind in "fc" else None


def _tolerance(values: Sequence[Any]) -> float:
    bits = [b for b in map(_significand, values) if b is not None]
    return next((tolerance for least, tolerance in _TOLERANCES if min(bits) >= least), 0.0) if bits else 0.0


def usual_size(value: Any) -> float:
    """Of the numbers in an array, estimated from some of them; 0 for one without numbers."""
    value = value if _is_torch(value) or _is_cupy(value) else _host(value)
    if _is_torch(value):
        value = value.float() if value.is_floating_point() and value.element_size() == 1 else value
    elif value.dtype.kind not in "biufc":
        return 0.0
    flat, indices = value.reshape(-1), _core.sampled_elements(_size(value))
    some = _sizes(flat[sys.modules["cupy"].asarray(indices) if _is_cupy(value) else indices])
    return _core.usual_size(some if some.any() else _sizes(flat))


def _sizes(value: Any) -> Any:
    return abs(_host(value).astype("complex128")).reshape(-1)


def difference(actual: Any, expected: Any, absolute: Optional[float] = None, relative: Optional[float] = None,
               scale: Optional[float] = None) -> Optional[str]:
    """How an output differs from what is expected; None where it does not. Without tolerances those of the type hold: see tune_callable.

    ``scale``: usual_size() of what is expected, where it is known."""
    if _mask_differs(actual, expected):
        return "its mask differs"
    actual, expected = _unmasked(actual), _unmasked(expected)
    a, e = _comparable(actual, expected)
    if tuple(a.shape) != tuple(e.shape):
        if _size(a) != _size(e) or not (_is_foreign(actual) or _is_foreign(expected)):
            return f"its shape is {tuple(a.shape)} instead of {tuple(e.shape)}"
        a, e = a.reshape(-1), e.reshape(-1)  # contents of foreign memory have one dimension
    if isinstance(a, np.ndarray) and not (a.dtype.kind in "biufc" and e.dtype.kind in "biufc"):
        return None if _equal_elements(a, e) else "it differs"
    exact = _significand(a) is None and _significand(e) is None
    if relative is None:
        relative = _tolerance([given if _is_torch(given) else taken for given, taken in ((actual, a), (expected, e))])
    with np.errstate(all="ignore"):
        if exact and not absolute and not relative:
            right = a == e
        else:
            if absolute is None:
                absolute = relative * (usual_size(e) if scale is None else scale)
            a, e = _widened(a), _widened(e)
            right = _right(a, e, absolute, relative)
    if bool(right.all()):
        return None
    right, a, e = _host(right), _host(a), _host(e)
    place = tuple(int(index) for index in np.argwhere(~right)[0]) if right.ndim else ()
    at = f", the first at {place[0] if len(place) == 1 else place}" if place else ""
    permitted = f"{absolute or 0:.3g} + {relative or 0:.3g} * |expected|; absolute_tolerance and relative_tolerance"
    order = ""
    if 1 < right.size <= _MOST_SORTED and bool(_right(np.sort(a, axis=None), np.sort(e, axis=None), absolute or 0, relative or 0).all()):
        order = "; it has the same elements in another order: if any order is right, return them sorted, or as a set"
    return (f"{int((~right).sum())} of {right.size} elements differ{at}: {a[place]:.9g} instead of {e[place]:.9g} "
            f"(permitted: {permitted}){order}")


def _right(a: Any, e: Any, absolute: float, relative: float) -> Any:
    return (abs(a - e) <= absolute + relative * abs(e)) | ((a != a) & (e != e)) | (a == e)


def _comparable(actual: Any, expected: Any) -> Any:
    """Both where they are, if they are in one place; else both on the host."""
    if _is_torch(actual) and _is_torch(expected) and actual.device == expected.device:
        return actual.detach(), expected.detach()
    if _is_cupy(actual) and _is_cupy(expected):
        return actual, expected
    return _host(actual), _host(expected)


def _size(value: Any) -> int:
    return int(value.numel() if _is_torch(value) else value.size)


def _widened(value: Any) -> Any:
    """In single or double precision: rounding in it is small beside the tolerance of the value's own type."""
    if _is_torch(value):
        torch = _torch()
        if value.is_complex():
            return value.to(torch.complex128)
        return value.float() if value.is_floating_point() and value.element_size() <= 4 else value.double()
    kind = value.dtype.kind
    return value.astype("complex128" if kind == "c" else "float32" if kind == "f" and value.dtype.itemsize <= 4 else "float64", copy=False)


def _needs_legacy() -> bool:
    """Numba and PyCUDA launch on the default stream unless another is given."""
    return "numba.cuda" in sys.modules or "pycuda.driver" in sys.modules


def order() -> str:
    """Where the launches of what is loaded go: "queue", the stream of the session; "legacy", CUDA's default; or "any"."""
    if _needs_legacy():
        return "legacy"
    return "queue" if "torch" in sys.modules or "cupy" in sys.modules else "any"


@functools.lru_cache(maxsize=1)
def _torch_has_gpu(torch: Any) -> bool:
    return bool(torch.cuda.is_available())  # looks at the environment each time


@functools.lru_cache(maxsize=16)
def _torch_stream(queue: int, number: int) -> Any:
    return _torch().cuda.ExternalStream(queue, device=number)


@contextlib.contextmanager
def stream(queue: int, number: int) -> Iterator[None]:
    """Makes a stream the current one of PyTorch and CuPy, unless another framework runs on the default stream beside them."""
    legacy = _needs_legacy()
    torch, cupy = _torch(), sys.modules.get("cupy")
    with contextlib.ExitStack() as stack:
        if torch is not None and _torch_has_gpu(torch):
            stack.enter_context(torch.cuda.device(number) if legacy else torch.cuda.stream(_torch_stream(queue, number)))
        if cupy is not None:
            stack.enter_context(cupy.cuda.Device(number))
            if not legacy:
                stack.enter_context(cupy.cuda.ExternalStream(queue, number))
        yield


def synchronise(arrays: Sequence[Any]) -> None:
    """Waits until arrays of GPUs hold what was written into them. Raises what a kernel has raised."""
    torch, cupy = _torch(), sys.modules.get("cupy")
    if torch is not None and _torch_has_gpu(torch) and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if cupy is not None and any(_is_cupy(array) for array in arrays):
        cupy.cuda.get_current_stream().synchronize()
        cupy.cuda.Device().synchronize()
    if "numba.cuda" in sys.modules and any(_is_foreign(array) for array in arrays):
        sys.modules["numba.cuda"].synchronize()
    if "pycuda.driver" in sys.modules:
        sys.modules["pycuda.driver"].Context.synchronize()
