"""Kernel Tuner's observers as ergotune's: single launches between the hooks, results of any kind; and those of sensors, whose values
ergotune's own sensors measure and which have Kernel Tuner's names and units."""

import contextlib
import math
import tempfile
import warnings
from pathlib import Path

from ._absent import NotSupported
from .observers.observer import BenchmarkObserver


class Device:
    """What an observer sees of the device. Kernel Tuner's backends have such names, which observers print."""

    def __init__(self, name, max_threads, env):
        self.name, self.max_threads, self.env = name, max_threads, env

    def __getattr__(self, name):
        if name in _OF_BACKENDS:
            raise NotSupported(f"ergotune.kernel_tuner gives observers no {name}: an OutputObserver sees the outputs, and the kernel's "
                               "inputs are restored before outputs are compared")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


#: What observers written for Kernel Tuner use of its backends to reach the device's memory.
_OF_BACKENDS = ("allocations", "memcpy_htod", "memcpy_dtoh", "memset", "context", "stream", "ctx")


class _Registers:
    """Stands for the registers of a thread in what an observer gives, until the measurement that knows them is there."""

    def __repr__(self):
        return "registers of a thread"


REGISTERS = _Registers()


class CudaDevice(Device):
    """CUDA backends have the registers of the kernel, and what they loaded as ``current_module``."""

    num_regs = REGISTERS

    @property
    def current_module(self):
        return self

    func = current_module

    def get_function(self, name):
        return self


#: Named as Kernel Tuner's backends, because observers tell users which backend lacks something.
DEVICES = {language: type(name, (CudaDevice if language == "cuda" else Device,), {}) for language, name in {
    "opencl": "OpenCLFunctions", "cuda": "CudaFunctions", "cpp": "CompilerFunctions", "fortran": "CompilerFunctions",
    "hip": "HipFunctions"}.items()}


class Watch:
    """All of a tuning run's observers behind one of ergotune's. ``take`` gives what they found of a configuration."""

    phase = "launches"

    def __init__(self, observers, names, iterations):
        self.names, self.iterations = names, iterations
        self.prologues = [o for o in observers if hasattr(o, "before_start") and _is(o, "PrologueObserver")]
        self.outputs = [o for o in observers if hasattr(o, "process_output")]
        self.plain = [o for o in observers if o not in self.prologues]
        self.all = observers
        self.failure = None
        self._found, self._registered, self._launches, self._seen = {}, None, 0, {}

    def register_configuration(self, configuration):
        params = {name: configuration[name] for name in self.names}
        if self._registered == params:
            return  # again, now that its time is known
        self._registered, self._launches, self._seen = params, 0, {}
        self._call(self.all, "register_configuration", params)

    def before_start(self):
        self._launches += 1
        if self._launches <= len(self.prologues):
            self._now = [self.prologues[self._launches - 1]]
        else:
            self._now = self.plain if self._launches - len(self.prologues) <= self.iterations else []
        self._call(self._now, "before_start")

    def after_start(self):
        self._call(self._now, "after_start")

    def during(self):
        self._call(self._now, "during")

    def after_finish(self):
        self._call(self._now, "after_finish")
        if self._now and self._now[0] in self.prologues:
            self._seen.update(self._results(self._now))

    def get_results(self):
        params, self._registered = self._registered, None
        self._seen.update(self._results(self.plain))
        self._found[tuple(params.values())] = self._seen
        return {}

    def take(self, configuration, measurement):
        found = self._found.pop(tuple(configuration.values()), {})
        known = measurement["quantities"].get("registers")
        registers = int(known["value"]) if known else math.nan
        return {name: registers if value is REGISTERS else value for name, value in found.items()}

    def process_output(self, answer, output):
        self._call(self.outputs, "process_output", answer, output)

    def _results(self, observers):
        found = {}
        for observer in observers:
            found.update(self._call([observer], "get_results") or {})
        return found

    def _call(self, observers, hook, *arguments):
        result = None
        for observer in observers:
            try:
                method = getattr(observer, hook, None)
                result = method(*arguments) if method else None
            except BaseException as failure:  # told to the user as it is, once the session has ended
                self.failure = self.failure or failure
                raise
        return result


class ReturnedTime:
    """The time (ms) that a C or Fortran function returns, as Kernel Tuner has it."""

    def __init__(self, cell):
        self.cell, self.times = cell, []

    def register_configuration(self, params):
        self.times = []

    def after_finish(self):
        self.times.append(self.cell.value)

    def get_results(self):
        if not self.times or any(math.isnan(t) for t in self.times):
            return {}  # it returned no real number: it is timed
        return {"time": sum(self.times) / len(self.times), "times": list(self.times)}


def _is(observer, name):
    """By the name of a base class: Kernel Tuner's own classes count as ours."""
    return any(base.__name__ == name for base in type(observer).__mro__)


def instances(observers, arguments):
    """Observers, made where a function that makes one is given (it gets device, platform, compiler and lang)."""
    made = []
    for observer in observers or ():
        if not hasattr(observer, "get_results") and callable(observer):
            observer = observer(arguments)
        if isinstance(observer, Meter):
            made.append(observer)
            continue
        if getattr(observer, "continuous_observer", None) is not None or _is(observer, "ContinuousObserver"):
            raise NotSupported("ergotune.kernel_tuner does not support ContinuousObserver: ergotune runs the kernel long enough "
                               'for its own power sensors; use ergotune.tune(problem, objective="energy")')
        if _is(observer, "NVMLObserver") or _is(observer, "TegraObserver") or _is(observer, "PMTObserver"):
            from .observers import __getattr__ as refuse

            refuse(type(observer).__name__)
        if not hasattr(observer, "get_results"):
            raise TypeError(f"an observer has the hooks of BenchmarkObserver: {observer!r} has no get_results")
        made.append(observer)
    return made


# -- meters ---------------------------------------------------------------------------------------------------------------

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
    #: s for which each configuration runs for its energy; Kernel Tuner's default leaves them to ergotune.
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
        return found

    def close(self):
        if self.folder is not None:
            self.folder.cleanup()

    def add_to(self, problem):
        """Observers of ergotune's that the meters need."""
        for meter in self.meters:
            if meter.observe:
                problem.observe(meter.observe)
        durations = [m.continuous_duration for m in self.meters if m.continuous_duration != 1]
        if durations:
            problem.observe(f"energy:exactly={float(max(durations))}")
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
