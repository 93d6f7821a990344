"""Energy of a region of code, without tuning anything."""

import csv
import functools
import io
import json
import os
import threading
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _core

__all__ = ["EnergyCallback", "EnergyMonitor", "RegionEnergy", "energy"]

_COLUMNS = ("name", "regions", "seconds", "joules", "half_width", "at_most", "above_idle", "above_idle_half_width", "watts")


@dataclass(frozen=True)
class RegionEnergy:
    """The energy of a region, or of all regions of one name.

    Attributes:
        joules: J, the sum over the sensors; None where a sensor does not resolve the region (its 95 % interval would be wider than
            half of the value).
        half_width: J, half of the 95 % interval of ``joules``.
        at_most: J that the region needs at most, also where it is too short to be resolved; None where a sensor sees only part of the
            time and the most that its device draws is not known.
        above_idle: J beyond what the devices need idle, with ``above_idle_half_width``; None where idle power is not known.
        seconds: s, of all regions of the name.
        watts: W, the mean.
        regions: how many regions these are.
        sensors: a dict for each sensor: sensor, joules, half_width, at_most, above_idle, why_not.
    """

    name: str
    regions: int
    seconds: float
    joules: Optional[float]
    half_width: Optional[float]
    at_most: Optional[float]
    above_idle: Optional[float]
    above_idle_half_width: Optional[float]
    watts: Optional[float]
    sensors: List[Dict[str, Any]] = field(default_factory=list)

    def per(self, iterations: int) -> "RegionEnergy":
        """The mean of so many equal iterations inside: energies, interval and time divided by them."""
        if not iterations > 0:
            raise ValueError(f"iterations is a number above 0, not {iterations!r}")
        divided = asdict(self)
        for name in ("seconds", "joules", "half_width", "at_most", "above_idle", "above_idle_half_width"):
            divided[name] = None if divided[name] is None else divided[name] / iterations
        divided["sensors"] = [{name: value / iterations if isinstance(value, float) else value for name, value in one.items()}
                              for one in self.sensors]
        return RegionEnergy(**divided)

    def __str__(self) -> str:
        if self.joules is not None:
            value = f"{self.joules:.4g} J +- {self.half_width:.2g} J, {self.watts:.4g} W"
        elif self.at_most is not None:
            value = f"at most {self.at_most:.4g} J (too short for the sensor)"
        else:
            value = "not known: " + "; ".join(f"{one['sensor']}: {one['why_not']}" for one in self.sensors if one["why_not"])
        count = f" in {self.regions} regions" if self.regions > 1 else ""
        return f"{self.name}: {value}, {self.seconds:.4g} s{count}"


class _Region:
    """A region of a monitor as a context manager; ``energy`` afterwards."""

    def __init__(self, monitor: "EnergyMonitor", name: str, synchronize: Optional[Callable[[], Any]] = None):
        self._monitor, self._name, self._synchronize = monitor, name, synchronize or monitor._synchronize
        self._region: Optional[_core.EnergyRegion] = None

    def __enter__(self) -> "_Region":
        self._synchronize()
        self._region = _core.EnergyRegion(self._monitor._core, self._name)
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self._synchronize()
        finally:
            if self._region is not None:
                self._region.end()

    @property
    def energy(self) -> RegionEnergy:
        """What it needed. Waits until the sensors have answered for its end, at most about a second."""
        if self._region is None:
            raise RuntimeError("the region has not begun: with monitor.region(\"name\") as region: ...")
        return RegionEnergy(**self._region.energy())


class EnergyMonitor:
    """Reads energy and power sensors in the background; its regions cost little more than reading the clock twice.

    Args:
        sensors: ids ("nvml:0", "rapl:package-0"; ``ergotune.devices()`` and ``ergotune devices`` list them). Without any: the best
            one of each device of this machine.
        idle: what ``above_idle`` is counted from. True: measured now, for one second, while the devices must be idle; a number:
            for so many seconds; a list: W of each sensor.
        synchronize: called at the beginning and end of each region, as work on a GPU is asynchronous:
            ``torch.cuda.synchronize``, ``cupy.cuda.Device().synchronize``.

    Regions may be nested and overlap, also between threads. Raises UserError for unknown sensors and for two that see the same
    energy. A process that is forked opens a monitor of its own; one of before the fork raises UserError there.
    """

    def __init__(self, *sensors: str, idle: Union[bool, float, Sequence[float]] = False,
                 synchronize: Optional[Callable[[], Any]] = None):
        if not all(isinstance(sensor, str) for sensor in sensors):
            raise TypeError(f"sensors are ids such as \"nvml:0\", not {sensors!r}")
        if synchronize is not None and not callable(synchronize):
            raise TypeError(f"synchronize is a function without arguments, not {synchronize!r}")
        self._core = _core.EnergyMonitor(list(sensors))
        self._synchronize = synchronize or (lambda: None)
        if isinstance(idle, Sequence):
            self._core.set_idle_power([float(watts) for watts in idle])
        elif idle:
            self._core.measure_idle(1.0 if idle is True else float(idle))

    @property
    def sensors(self) -> List[str]:
        return self._core.sensors

    def region(self, name: str = "region") -> _Region:
        """A context manager: ``with monitor.region("forward"): ...``"""
        return _Region(self, name)

    def totals(self) -> List[RegionEnergy]:
        """The regions that have ended, by name."""
        return [RegionEnergy(**total) for total in self._core.totals()]

    def csv(self) -> str:
        """The totals as CSV with a heading; an unknown value is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for total in self.totals():
            writer.writerow(["" if (value := getattr(total, name)) is None else value for name in _COLUMNS])
        return text.getvalue()

    def json_lines(self) -> str:
        """The totals as JSON, one to a line."""
        return "".join(json.dumps(asdict(total)) + "\n" for total in self.totals())

    def prometheus(self) -> str:
        """The totals in Prometheus' text format, by region and sensor: energy and seconds are counters."""
        def label(text: str) -> str:
            return text.replace("\\", r"\\").replace("\"", r"\"").replace("\n", r"\n")
        totals = self.totals()
        lines = ["# TYPE ergotune_region_energy_joules_total counter"]
        for total in totals:
            lines += [f"ergotune_region_energy_joules_total{{region=\"{label(total.name)}\",sensor=\"{label(one['sensor'])}\"}} {one['joules']!r}"
                      for one in total.sensors if one["joules"] is not None]
        lines.append("# TYPE ergotune_region_seconds_total counter")
        lines += [f"ergotune_region_seconds_total{{region=\"{label(total.name)}\"}} {total.seconds!r}" for total in totals]
        lines.append("# TYPE ergotune_regions_total counter")
        lines += [f"ergotune_regions_total{{region=\"{label(total.name)}\"}} {total.regions}" for total in totals]
        return "\n".join(lines) + "\n"


_monitors: Dict[Tuple[str, ...], EnergyMonitor] = {}
_lock = threading.Lock()


def _monitor(sensors: Tuple[str, ...]) -> EnergyMonitor:
    """One for each set of sensors of this process: opening them takes up to a second."""
    with _lock:
        if sensors not in _monitors:
            _monitors[sensors] = EnergyMonitor(*sensors)
        return _monitors[sensors]


def _forget_in_child() -> None:
    # a monitor's thread stays in the parent: the child opens its own
    global _lock
    _monitors.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)


class energy:
    """Measures the energy of a region of code, as a context manager or as a decorator::

        with ergotune.energy("nvml:0", "rapl:package-0") as region:
            work()
        print(region.joules, region.half_width)

        @ergotune.energy("nvml:0")
        def step(): ...
        print(step.energy())

    Args:
        sensors: as for :class:`EnergyMonitor`; they are opened once for a process.
        name: of the region; a decorated function's own name otherwise.
        monitor: an :class:`EnergyMonitor` in place of sensors.
        synchronize: called at the beginning and the end (``torch.cuda.synchronize``).

    After the region has ended it has the attributes of :class:`RegionEnergy`; asking for the first waits until the sensors have
    answered for the end, at most about a second.
    """

    def __init__(self, *sensors: str, name: Optional[str] = None, monitor: Optional[EnergyMonitor] = None,
                 synchronize: Optional[Callable[[], Any]] = None):
        if monitor is not None and sensors:
            raise TypeError("a monitor has its sensors: give one of them")
        if len(sensors) == 1 and callable(sensors[0]):
            raise TypeError("write @ergotune.energy() with brackets")
        self._sensors, self._name, self._monitor, self._synchronize = sensors, name, monitor, synchronize
        self._region: Optional[_Region] = None
        self._found: Optional[RegionEnergy] = None

    def _opened(self) -> EnergyMonitor:
        return self._monitor or _monitor(self._sensors)

    def __enter__(self) -> "energy":
        self._found = None
        self._region = _Region(self._opened(), self._name or "region", self._synchronize)
        self._region.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._region is not None:
            self._region.__exit__(*raised)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        name = self._name or function.__qualname__

        @functools.wraps(function)
        def measured(*arguments: Any, **named: Any) -> Any:
            with energy(name=name, monitor=self._opened(), synchronize=self._synchronize):
                return function(*arguments, **named)

        def total() -> Optional[RegionEnergy]:
            """All calls so far; None before the first."""
            return next((one for one in self._opened().totals() if one.name == name), None)
        measured.energy = total  # type: ignore[attr-defined]
        return measured

    @property
    def result(self) -> RegionEnergy:
        """What the region needed."""
        if self._region is None:
            raise RuntimeError("the region has not begun")
        if self._found is None:
            self._found = self._region.energy
        return self._found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)


class EnergyCallback:
    """Energy of training and of each epoch, for PyTorch Lightning's ``Trainer(callbacks=[...])`` and Hugging Face's
    ``Trainer(callbacks=[...])``; it needs neither to be installed.

    Args:
        monitor: an :class:`EnergyMonitor`; without one that of all devices of this machine.
        report: function(RegionEnergy), called after training for each name; prints them otherwise.
    """

    def __init__(self, monitor: Optional[EnergyMonitor] = None, report: Callable[[RegionEnergy], Any] = print):
        self.monitor = monitor or _monitor(())
        self._report = report
        self._regions: Dict[str, _Region] = {}

    def _begin(self, name: str) -> None:
        self._regions[name] = self.monitor.region(name).__enter__()

    def _end(self, name: str) -> None:
        region = self._regions.pop(name, None)
        if region is not None:
            region.__exit__(None, None, None)

    def on_train_start(self, *_: Any, **__: Any) -> None:
        self._begin("training")

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._end("epoch")
        self._end("training")
        for total in self.monitor.totals():
            self._report(total)

    def on_train_epoch_start(self, *_: Any, **__: Any) -> None:
        self._begin("epoch")

    def on_train_epoch_end(self, *_: Any, **__: Any) -> None:
        self._end("epoch")

    # the same events by Hugging Face's names
    on_train_begin, on_epoch_begin, on_epoch_end = on_train_start, on_train_epoch_start, on_train_epoch_end

    #: what Lightning asks of a callback
    state_key = "ergotune.EnergyCallback"

    def state_dict(self) -> Dict[str, Any]:
        return {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        pass

    def setup(self, *_: Any, **__: Any) -> None:
        pass

    teardown = setup

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):  # every other event
            return lambda *_, **__: None
        raise AttributeError(name)
