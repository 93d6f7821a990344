"""Observers as Kernel Tuner's scripts write them."""

from .._absent import ENERGY, MODULES
from .._notsupported import absent
from .observer import (  # noqa: F401
    BenchmarkObserver,
    ContinuousObserver,
    IterationObserver,
    OutputObserver,
    PrologueObserver,
)
from .register import RegisterObserver  # noqa: F401

_SENSORS = ("NVMLObserver", "PMTObserver", "PMTContinuousObserver", "TegraObserver", "PowerSensorObserver", "AMDSMIObserver")
__getattr__ = absent(__name__, {**dict.fromkeys(_SENSORS, ENERGY), "NCUObserver": MODULES["observers.ncu"]})
