"""Base classes of Kernel Tuner's observers."""

from abc import ABC, abstractmethod
from typing import Any, Dict, List

from .._absent import ENERGY, absent

__getattr__ = absent(__name__, {"ContinuousObserver": ENERGY})


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
