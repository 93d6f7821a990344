"""NVIDIA GPUs: power, energy, clocks and temperature, and lists of clocks and limits to tune."""

import ctypes
import os
import time
from typing import Dict, List, Optional, Sequence

import numpy as np

from .._absent import ENERGY, absent
from .._observers import Meter, check, warn_of_fallback

__getattr__ = absent(__name__, {"nvml": ENERGY})


class Nvml:
    """One GPU, by its NVML index: libnvidia-ml.so.1 by ctypes, as far as lists of clocks and limits need it. Raises OSError where there is
    no driver, RuntimeError where the driver refuses."""

    def __init__(self, device=0):
        self._library = ctypes.CDLL(os.environ.get("ERGOTUNE_NVML") or "libnvidia-ml.so.1")
        self._call("nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(device or 0)), ctypes.byref(self._handle))

    def _call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} answers {code}")

    def _list(self, name, *arguments):
        count = ctypes.c_uint(1024)
        values = (ctypes.c_uint * 1024)()
        self._call(name, self._handle, *arguments, ctypes.byref(count), values)
        return list(values[: count.value])

    def memory_clocks(self):
        """MHz, descending as the driver gives them."""
        return self._list("nvmlDeviceGetSupportedMemoryClocks")

    def graphics_clocks(self, memory_clock):
        """MHz that go with a memory clock."""
        return self._list("nvmlDeviceGetSupportedGraphicsClocks", ctypes.c_uint(memory_clock))

    def power_limits(self):
        """(least, most), W."""
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self._call("nvmlDeviceGetPowerManagementLimitConstraints", self._handle, ctypes.byref(low), ctypes.byref(high))
        return low.value * 1e-3, high.value * 1e-3

    def power(self):
        """W, now."""
        milliwatts = ctypes.c_uint()
        self._call("nvmlDeviceGetPowerUsage", self._handle, ctypes.byref(milliwatts))
        return milliwatts.value * 1e-3

    def uuid(self):
        text = ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetUUID", self._handle, text, ctypes.c_uint(96))
        return text.value.decode()


class NVMLObserver(Meter):
    """``nvml_power`` (W), ``nvml_energy`` (J per launch), ``core_freq``, ``mem_freq`` (MHz), ``temperature`` (degrees C),
    ``gr_voltage`` (mV) and ``power_readings`` (lists of s and W), as far as they are asked for.

    They are ergotune's own measurements: energy and time of the same launches, settled, by the GPU's best sensor
    (docs/energy.md). With it ``nvml_gr_clock``, ``nvml_mem_clock`` (MHz) and ``nvml_pwr_limit`` (W) in tune_params are set, and
    everything is put back however the run ends (docs/clocks.md).

    Args:
        device: NVML's index of the GPU; None: the device's own.
        save_all: a list under each name with an s at its end as well.
        use_locked_clocks: locked clocks are used where the GPU has them, whatever it is.
        nvidia_smi_fallback: has no effect, and a warning says it: without permission ergotuned sets clocks (docs/clocks.md).
        continuous_duration: s for which the kernel runs for the energy of each configuration, whatever the precision; with 1, Kernel Tuner's
            default, it runs until the energy is precise.
    """

    def __init__(self, observables: Sequence[str], device: Optional[int] = None, save_all: bool = False,
                 nvidia_smi_fallback: Optional[str] = None, use_locked_clocks: bool = False, continuous_duration: float = 1) -> None:
        known = {"nvml_power": ("power", 1.0), "nvml_energy": ("energy", 1.0), "core_freq": ("core_clock", 1e-6),
                 "mem_freq": ("memory_clock", 1e-6), "temperature": ("temperature", 1.0), "gr_voltage": ("core_voltage", 1e3)}
        check(observables, ["power_readings", *known])
        warn_of_fallback(nvidia_smi_fallback)
        self.continuous_duration = continuous_duration
        self.observables = list(observables)
        self.save_all, self.device = save_all, device
        self.readings = "power_readings" in observables
        self.keys = {name: known[name] for name in observables if name in known}
        self.sensors = () if device is None else (f"nvml:{device}",)
        self.control = f"nvml:{device or 0}"
        self.gpu = Nvml(device).uuid() if "gr_voltage" in observables else None


def get_nvml_gr_clocks(device: int, n: Optional[int] = None, quiet: bool = False) -> Dict[str, List[int]]:
    """``{"nvml_gr_clock": [...]}``: n of the graphics clocks (MHz) at the highest memory clock; all where n is None."""
    gpu = Nvml(device)
    clocks = gpu.graphics_clocks(max(gpu.memory_clocks()))
    if n and len(clocks) > n:
        clocks = [clocks[i] for i in np.ceil(np.linspace(0, len(clocks) - 1, n)).astype(int)]
    return _told("gr frequencies", "nvml_gr_clock", list(clocks), quiet)


def get_nvml_mem_clocks(device: int, n: Optional[int] = None, quiet: bool = False) -> Dict[str, List[int]]:
    """``{"nvml_mem_clock": [...]}``: memory clocks, MHz."""
    clocks = Nvml(device).memory_clocks()
    if n and len(clocks) > n:
        clocks = clocks[:: int(len(clocks) / n)]
    return _told("mem frequencies", "nvml_mem_clock", clocks, quiet)


def get_nvml_pwr_limits(device: int, n: Optional[int] = None, quiet: bool = False) -> Dict[str, List[int]]:
    """``{"nvml_pwr_limit": [...]}``: n limits, W, in steps of 5 W."""
    low, high = Nvml(device).power_limits()
    if n is None:
        n = int((high - low) / 5) + 1
    limits = sorted({int(5 * round(limit / 5)) for limit in np.linspace(low, high, n)})
    return _told("power limits", "nvml_pwr_limit", limits, quiet)


def get_idle_power(device: int, n: int = 5, sleep_s: float = 0.1) -> float:
    """W: the mean of n readings."""
    gpu = Nvml(device)
    readings = []
    for _ in range(n):
        time.sleep(sleep_s)
        readings.append(gpu.power())
    return float(np.mean(readings))


def _told(what, name, values, quiet):
    if not quiet:
        print(f"Using {what}:", values)
    return {name: values}
