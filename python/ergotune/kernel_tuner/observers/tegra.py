"""Jetson: power, energy, clock and temperature of the GPU, and its clocks to tune."""

import os
from pathlib import Path
from typing import Sequence

import numpy as np

from .._absent import ENERGY, absent
from .._observers import Meter, check

__getattr__ = absent(__name__, {"tegra": ENERGY})


class TegraObserver(Meter):
    """``tegra_power`` (W), ``tegra_energy`` (J per launch), ``core_freq`` (Hz) and ``tegra_temp`` (degrees C), as far as they
    are asked for. With it ``tegra_gr_clock`` (Hz) in tune_params is set, and put back however the run ends.

    Args:
        power_path: the folder of the power monitor's files, or one above it; without it the driver's is searched for.
        temp_path: the folder of the GPU's thermal zone; without it the zone named after the GPU.
    """

    control = "tegra"

    def __init__(self, observables: Sequence[str], save_all: bool = False, power_path: str = "", temp_path: str = "") -> None:
        known = {"core_freq": ("core_clock", 1.0), "tegra_temp": ("temperature", 1.0), "tegra_power": ("power", 1.0),
                 "tegra_energy": ("energy", 1.0)}
        check(observables, list(known))
        if power_path:
            self.sensors = (f"tegra:{power_path}",)
        if temp_path:
            os.environ["ERGOTUNE_TEGRA_TEMPERATURE"] = temp_path  # the processes that measure read it
        self.observables, self.save_all = list(observables), save_all
        self.keys = {name: known[name] for name in observables}


def get_tegra_gr_clocks(n=None, quiet=False):
    """``{"tegra_gr_clock": [...]}``: n of the GPU's clocks, Hz. Raises FileNotFoundError where there is no Tegra GPU."""
    root = Path(os.environ.get("ERGOTUNE_SYSFS_ROOT") or "/") / "sys/class/devfreq"
    for device in sorted(root.glob("*")):
        name = device / "device/of_node/name"
        if name.is_file() and name.read_text().strip("\0 \n") in ("gv11b", "gp10b", "ga10b", "gpu"):
            clocks = [int(word) for word in (device / "available_frequencies").read_text().split()]
            break
    else:
        raise FileNotFoundError("No internal tegra GPU found")
    if n and len(clocks) > n:
        clocks = [clocks[i] for i in np.ceil(np.linspace(0, len(clocks) - 1, n)).astype(int)]
    if not quiet:
        print("Using gr frequencies:", clocks)
    return {"tegra_gr_clock": clocks}
