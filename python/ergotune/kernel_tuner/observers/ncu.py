"""Kernel Tuner's kernel_tuner.observers.ncu; what to do instead."""

from .._notsupported import absent
from . import INSTEAD

__getattr__ = absent(__name__, dict.fromkeys((
    "NCUObserver",
), INSTEAD["NCUObserver"]))
