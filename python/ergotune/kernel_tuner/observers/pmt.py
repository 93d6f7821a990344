"""The power meters of the PMT library, by ergotune's own sensors."""

from typing import Any

from .._absent import ENERGY, absent
from .._observers import Meter, check, only_one

__getattr__ = absent(__name__, {"PMTContinuousObserver": ENERGY})

_SENSORS = {"nvidia": "nvml:{}", "rapl": "rapl:package-{}", "rocm": "amdgpu:card{}", "powersensor2": "powersensor2:{}",
            "powersensor3": "powersensor3:{}"}
_DEFAULT = {"powersensor2": "/dev/ttyACM0", "powersensor3": "/dev/ttyACM0"}


class PMTObserver(Meter):
    """``<platform>_energy`` (J per launch) and ``<platform>_power`` (W) of one platform: nvidia, rapl, rocm, powersensor2 or
    powersensor3; a name, or a name with its device.

    Args:
        use_continuous_observer: energy is always taken while the kernel runs again and again.
        continuous_duration: s for which the kernel runs for the energy of each configuration, whatever the precision; with 1, Kernel Tuner's
            default, it runs until the energy is precise.
    """

    def __init__(self, observable: Any = None, use_continuous_observer: bool = False, continuous_duration: float = 1) -> None:
        if isinstance(observable, dict):
            meters = dict(observable)
        elif isinstance(observable, list):
            meters = dict(one if isinstance(one, tuple) else (one, None) for one in observable)
        else:
            meters = {observable: None}
        check(meters, ["powersensor2", "powersensor3", "nvidia", "likwid", "rapl", "rocm", "xilinx"])
        check(meters, list(_SENSORS))
        only_one(list(meters))
        (name, device), = meters.items()
        self.observable = meters
        self.continuous_duration = continuous_duration
        self.keys = {f"{name}_energy": ("energy", 1.0), f"{name}_power": ("power", 1.0)}
        self.sensors = (_SENSORS[name].format(_DEFAULT.get(name, "0") if device is None else device),)
