"""Observers as Kernel Tuner's scripts write them."""

from .._notsupported import absent
from .observer import (  # noqa: F401
    BenchmarkObserver,
    ContinuousObserver,
    IterationObserver,
    OutputObserver,
    PrologueObserver,
)
from .register import RegisterObserver  # noqa: F401

_ENERGY = ('ergotune measures power and energy itself: use ergotune.tune(problem, objective="energy", sensors=[...]), and '
           "parameters of kind core_clock, memory_clock or power_limit for clocks (docs/clocks.md)")

#: Kernel Tuner's observers for sensors and counters, by module.
INSTEAD = {
    "NVMLObserver": _ENERGY, "PMTObserver": _ENERGY, "PMTContinuousObserver": _ENERGY, "TegraObserver": _ENERGY,
    "PowerSensorObserver": _ENERGY, "AMDSMIObserver": _ENERGY,
    "NCUObserver": "counters come with Nsight Compute itself: run it on `ergotune measure` of one configuration",
}
__getattr__ = absent(__name__, INSTEAD)
