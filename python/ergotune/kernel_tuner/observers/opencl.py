"""Kernel Tuner's kernel_tuner.observers.opencl; what to do instead."""

from .._notsupported import absent

__getattr__ = absent(__name__, dict.fromkeys((
    "OpenCLObserver",
), "ergotune times launches itself; a row's time and times are what this observer gave"))
