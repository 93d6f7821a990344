"""Kernel Tuner's kernel_tuner.observers.nvml; what to do instead."""

from .._notsupported import absent
from . import _ENERGY

__getattr__ = absent(__name__, dict.fromkeys((
    "NVMLObserver",
    "nvml",
    "get_nvml_gr_clocks",
    "get_nvml_mem_clocks",
    "get_nvml_pwr_limits",
    "get_idle_power",
    "NVMLPowerObserver",
), _ENERGY))
