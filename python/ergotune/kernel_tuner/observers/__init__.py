"""Observers as Kernel Tuner's scripts write them."""

from .._absent import ENERGY, absent
from .observer import BenchmarkObserver, IterationObserver, OutputObserver, PrologueObserver
from .register import RegisterObserver

__all__ = ["BenchmarkObserver", "IterationObserver", "OutputObserver", "PrologueObserver", "RegisterObserver"]

_WORK = {"NVMLObserver": "nvml", "TegraObserver": "tegra", "PowerSensorObserver": "powersensor", "PMTObserver": "pmt",
         "NCUObserver": "ncu"}
_absent = absent(__name__, dict.fromkeys(("ContinuousObserver", "PMTContinuousObserver", "AMDSMIObserver"), ENERGY))


def __getattr__(name):
    if name in _WORK:  # they are made of BenchmarkObserver
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_WORK[name]}"), name)
    return _absent(name)
