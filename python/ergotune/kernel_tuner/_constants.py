"""Constant memory (cmem_args): each array becomes the initialiser of its ``__constant__`` variable in the source."""

import re

import numpy as np

from ._absent import NotSupported

_LANGUAGES = ("cuda", "hip")
_ALIGNED = r"(?:__align__|alignas)\([^()]*\)"


def with_constants(text, constants, language):
    """The source with the variables that ``constants`` names filled. Raises NotSupported for what has no initialiser,
    ValueError where the source does not declare a variable."""
    if constants and language not in _LANGUAGES:
        raise NotSupported("ergotune.kernel_tuner fills constant memory (cmem_args) of CUDA and HIP kernels; "
                           "pass the array as an ordinary (__constant) buffer argument")
    for name, array in (constants or {}).items():
        declaration = re.compile(rf"(\b__constant__\b(?:{_ALIGNED}|[^;={{}}()])*\b{re.escape(name)}\s*(?:\[[^\]]*\]\s*)*)(?=[;,])")
        filled = f"= {{{', '.join(_literals(name, np.asarray(array)))}}}"
        text, count = declaration.subn(lambda found, filled=filled: found.group(1) + filled, text)
        if count == 0:
            raise ValueError(f"cmem_args: the source declares no variable \"__constant__ ... {name}\" without an initialiser")
    return text


def _literals(name, array):
    flat = np.ravel(array)
    if flat.dtype.kind == "c":
        flat = flat.view({8: np.float32, 16: np.float64}[flat.dtype.itemsize])
    if flat.dtype.kind in "iub":
        return [_whole(int(value)) for value in flat]
    if flat.dtype not in (np.float32, np.float64) or not np.isfinite(flat).all():
        raise NotSupported(f"ergotune.kernel_tuner fills constant memory with finite numbers of 32 or 64 bits: {name} is {array.dtype}; "
                           "pass the array as an ordinary buffer argument")
    suffix = "f" if flat.dtype.itemsize == 4 else ""
    return [repr(float(value)) + suffix for value in flat]


def _whole(value):
    if value == -(1 << 63):  # its digits alone are no literal
        return "(-9223372036854775807LL - 1)"
    return f"{value}ULL" if value >= 1 << 63 else str(value)
