"""Kernel Tuner's interface on ergotune: change ``import kernel_tuner`` to ``import ergotune.kernel_tuner as kernel_tuner``.

Signatures, argument meanings and result dictionaries are Kernel Tuner's (times in ms, at this border only). What is not
supported raises :class:`NotSupported`, naming what it was and what to use instead.
"""

from . import _absent, searchspace, strategies, utils  # noqa: F401
from ._absent import NotSupported
from ._t1 import tune_kernel_T1
from .integration import create_device_targets, store_results
from .interface import run_kernel, tune_cache, tune_kernel
from .observers import BenchmarkObserver

#: The version of Kernel Tuner whose interface this is.
__version__ = "1.5.0"

__all__ = ["BenchmarkObserver", "NotSupported", "create_device_targets", "run_kernel", "store_results", "tune_cache",
           "tune_kernel", "tune_kernel_T1"]

_absent.install(__name__)
