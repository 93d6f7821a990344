"""Base classes of Kernel Tuner's observers."""

import time
from abc import ABC, abstractmethod
from typing import Any, Dict, List

import numpy as np


class BenchmarkObserver(ABC):
    """Hooks around single launches: exactly one between ``before_start`` and ``after_finish``, up to ``iterations`` of them
    for each configuration, after its time was measured. ``get_results`` gives a dict that is added to the row."""

    def register_device(self, dev: Any) -> None:
        """Once, with an object that has ``name``, ``max_threads`` and ``env``."""
        self.dev = dev

    def register_configuration(self, params: Dict[str, Any]) -> None:
        """Once per configuration, before anything else."""

    def before_start(self) -> None:
        """Before a launch."""

    def after_start(self) -> None:
        """After it was queued."""

    def during(self) -> None:
        """While it runs, again and again."""

    def after_finish(self) -> None:
        """After it has finished."""

    @abstractmethod
    def get_results(self) -> Dict[str, Any]:
        """What is added to the row: anything that JSON can hold."""


class IterationObserver(BenchmarkObserver):
    """The same."""


class OutputObserver(BenchmarkObserver):
    """Sees a configuration's output, before it is measured."""

    @abstractmethod
    def process_output(self, answer: Any, output: List[Any]) -> None:
        """``answer`` as given to tune_kernel, ``output`` a list with an array for each argument (None for scalars)."""


class PrologueObserver(BenchmarkObserver):
    """Its hooks see one launch of their own per configuration, the first."""

    @abstractmethod
    def before_start(self) -> None:
        """Before it."""

    @abstractmethod
    def after_finish(self) -> None:
        """After it."""


class ContinuousObserver(BenchmarkObserver):
    """Power while the kernel runs again and again. An observer offers one as its attribute ``continuous_observer``;
    its ``parent`` has ``read_power()`` (W)."""

    def __init__(self, name, observables, parent, continuous_duration=1):
        supported = [name + "_power", name + "_energy", "power_readings"]
        for observable in observables:
            if observable not in supported:
                raise ValueError(f"Observable {observable} not in supported: {supported}")
        self.name, self.observables, self.parent = name, observables, parent
        self.continuous_duration = continuous_duration
        self.power = self.energy = self.t0 = 0
        self.power_readings = []
        self.results = None

    def before_start(self) -> None:
        self.parent.before_start()
        self.power = self.energy = 0
        self.power_readings = []

    def after_start(self) -> None:
        self.parent.after_start()
        self.t0 = time.perf_counter()

    def during(self) -> None:
        self.parent.during()
        power, now = self.parent.read_power(), time.perf_counter() - self.t0
        last = self.power_readings[-1] if self.power_readings else None
        if last is None or last[1] != power or now - last[0] > 0.01:
            self.power_readings.append([now, power])

    def after_finish(self) -> None:
        self.parent.after_finish()
        if self.power_readings:
            self.power = np.median([power for _, power in self.power_readings])
            self.energy = self.power * self.results["time"] / 1e3

    def get_results(self) -> Dict[str, Any]:
        found = {"pwr_" + key: value for key, value in self.parent.get_results().items()}
        mine = {self.name + "_power": self.power, self.name + "_energy": self.energy, "power_readings": self.power_readings}
        found.update({key: value for key, value in mine.items() if key in self.observables})
        return found
