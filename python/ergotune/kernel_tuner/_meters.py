"""Kernel Tuner's observers of sensors: what they ask for is measured by ergotune's own sensors, and given under their names
and in their units."""

import contextlib
import tempfile
import warnings
from pathlib import Path

from ._absent import NotSupported
from .observers.observer import BenchmarkObserver


#: Parameters that are set through a driver.
CLOCKS = ("nvml_gr_clock", "nvml_mem_clock", "nvml_pwr_limit", "tegra_gr_clock")
#: Names of ergotune's that a row does not have beside a meter's own.
QUANTITIES = ("energy", "power", "core_clock", "memory_clock", "temperature", "core_voltage", "idle_subtracted_energy",
              "settling_time")


class Meter(BenchmarkObserver):
    """An observer whose values are ergotune's measurements. ``keys`` maps each result key to ergotune's quantity and the
    factor between them."""

    keys = {}
    sensors = ()
    #: The control that sets clocks and limits, where the observer brings one.
    control = None
    save_all = False
    #: Whether energy is to be measured for it.
    energy = True
    #: s of a configuration's energy measurement; Kernel Tuner's default leaves them to ergotune.
    continuous_duration = 1
    #: What the problem is asked to observe for it, beside that.
    observe = None

    def get_results(self):
        return {}

    def take(self, measurement):
        """What is added to the row of a measurement."""
        quantities, row = measurement["quantities"], {}
        for key, (quantity, factor) in self.keys.items():
            value = quantities.get(quantity)
            row[key] = float("nan") if value is None else value["value"] * factor
            if self.save_all:
                row[key + "s"] = [row[key]]
        return row


class Meters:
    """All of a tuning run's meters."""

    def __init__(self, meters, clocked):
        self.meters = list(meters)
        self.keep = any(getattr(m, "readings", False) for m in self.meters)
        self.folder = tempfile.TemporaryDirectory(prefix="ergotune-traces-") if self.keep else None
        self.clocked = bool(clocked)
        if clocked and not any(m.control for m in self.meters):
            raise ValueError(f"{clocked[0]} is set through an observer: give NVMLObserver or TegraObserver in observers=[...]")

    def __bool__(self):
        return bool(self.meters)

    def settings(self):
        """What the session is to be run with."""
        sensors = list(dict.fromkeys(s for m in self.meters for s in m.sensors))
        controls = [m.control for m in self.meters if m.control and self.clocked]
        found = {"energy": True} if any(m.energy for m in self.meters) else {}
        if sensors:
            found["sensors"] = sensors
        if controls:
            found["controls"] = controls[:1]
        durations = [m.continuous_duration for m in self.meters if m.continuous_duration != 1]
        if durations:
            found["energy_budget"] = float(max(durations))
        return found

    def close(self):
        if self.folder is not None:
            self.folder.cleanup()

    def add_to(self, problem):
        """Observers of ergotune's that the meters need."""
        for meter in self.meters:
            if meter.observe:
                problem.observe(meter.observe)
        if any(key[0] == "core_voltage" for m in self.meters for key in m.keys.values()):
            gpus = [m.gpu for m in self.meters if getattr(m, "gpu", None)]
            problem.observe("core_voltage" + "".join(f":gpu={gpu}" for gpu in gpus[:1]))
        if self.keep:
            sensors = "".join(f",sensors={s}" for m in self.meters for s in m.sensors)
            problem.observe(f"trace:folder={self.folder.name},before=0,after=0,seconds=1{sensors}")

    def take(self, row, measurement, own):
        """Puts the meters' values into a row, in the place of ergotune's own names."""
        for name in own:
            row.pop(name, None)
        for meter in self.meters:
            row.update(meter.take(measurement))
        if self.keep:
            row["power_readings"] = self._readings()
        return row

    def _readings(self):
        files = sorted(Path(self.folder.name).glob("*.csv"), key=lambda f: f.stat().st_mtime)
        if not files:
            return []
        readings = []
        for line in files[-1].read_text().splitlines()[1:]:
            time, rest = line.split(",", 1)
            series, value = rest.rsplit(",", 1)
            if series not in ("core_clock_mhz", "memory_clock_mhz", "temperature_c", "core_voltage_v", "launches") and \
                    not series.startswith("reason:"):
                readings.append([float(time), float(value)])
        with contextlib.suppress(OSError):
            files[-1].unlink()
        return readings


def check(observables, supported):
    """Raises as Kernel Tuner does."""
    for observable in observables:
        if observable not in supported:
            raise ValueError(f"Observable {observable} not in supported: {supported}")


def warn_of_fallback(nvidia_smi):
    """Kernel Tuner sets clocks by nvidia-smi where it has no permission itself."""
    if nvidia_smi:
        warnings.warn("nvidia_smi_fallback has no effect: without permission ergotuned sets clocks (the page \"Clocks and power limits\")", stacklevel=3)


def only_one(names):
    if len(names) > 1:
        raise NotSupported("ergotune.kernel_tuner measures energy with the sensors of one platform at a time: "
                           f"give one of {', '.join(names)}")
