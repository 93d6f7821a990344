"""Kernel Tuner's kernel_tuner.observers.julia; what to do instead."""

from .._notsupported import absent

__getattr__ = absent(__name__, dict.fromkeys((
    "JuliaRuntimeObserver",
    "JuliaJITWarmup",
), "ergotune times launches itself; a row's time and times are what this observer gave"))
