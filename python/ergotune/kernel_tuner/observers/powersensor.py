"""Kernel Tuner's kernel_tuner.observers.powersensor; what to do instead."""

from .._notsupported import absent
from . import _ENERGY

__getattr__ = absent(__name__, dict.fromkeys((
    "PowerSensorObserver",
), _ENERGY))
