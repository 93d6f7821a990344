"""Kernel Tuner's kernel_tuner.observers.tegra; what to do instead."""

from .._notsupported import absent
from . import _ENERGY

__getattr__ = absent(__name__, dict.fromkeys((
    "TegraObserver",
    "tegra",
    "get_tegra_gr_clocks",
), _ENERGY))
