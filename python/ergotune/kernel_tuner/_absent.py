"""Names and modules of Kernel Tuner's that have no counterpart: each name raises, with the remedy; importing the modules works."""

import sys
from types import ModuleType
from typing import Any, Callable, Dict

_INSIDE = "internal API, not provided; "
ENERGY = ('ergotune measures power and energy itself: use ergotune.tune(problem, objective="energy", sensors=[...]), and '
          "parameters of kind core_clock, memory_clock or power_limit for clocks (the page \"Clocks and power limits\")")
_TIMES = "ergotune times launches itself; a row's time and times are what this observer gave"
_STRATEGY = _INSIDE + "give the strategy's name to tune_kernel; your own are classes for strategies.wrapper.OptAlgWrapper"
_BACKEND = _INSIDE + "ergotune.devices() lists devices, run_kernel runs a kernel"

MODULES = {
    "backends": _BACKEND,
    **{f"backends.{name}": _BACKEND for name in
       ("backend", "compiler", "cupy", "hip", "hip.hip", "hip.util", "hypertuner", "julia", "julia_helper", "nvcuda",
        "opencl", "pycuda")},
    "core": _INSIDE + "run_kernel compiles and runs a kernel, tune_kernel tunes it",
    "hyper": "`ergotune score` scores strategies with their options on recorded spaces (the page \"Search strategies\")",
    "observers.amd": ENERGY,
    **{f"observers.{name}": _TIMES for name in ("compiler", "cupy", "hip", "julia", "nvcuda", "opencl", "pycuda")},
    "runners": _INSIDE + "tune_kernel measures, or simulates from a cache",
    **{f"runners.{name}": _INSIDE + "tune_kernel measures, or simulates from a cache"
       for name in ("parallel", "runner", "sequential", "simulation")},
    **{f"strategies.{name}": _STRATEGY for name in
       ("basinhopping", "bayes_opt", "brute_force", "diff_evo", "dual_annealing", "firefly_algorithm",
        "gen_adaptive_tabu_greywolf", "gen_hybrid_vndx", "genetic_algorithm", "greedy_ils", "greedy_mls", "hillclimbers",
        "minimize", "mls", "ordered_greedy_mls", "pso", "pyatf_strategies", "pymoo_minimize", "random_sample",
        "simulated_annealing", "skopt")},
    "utils.nvcuda": _BACKEND,
}


class NotSupported(NotImplementedError):
    """A name or an argument of Kernel Tuner's that ergotune does not take; the message names the alternative."""


def absent(module: str, names: Dict[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: ``names`` maps each name that is not supported to what to do instead."""

    def look_up(name: str) -> Any:
        if name in names:
            raise NotSupported(f"{module}.{name} is not supported by ergotune: {names[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look_up


class AbsentModule(ModuleType):
    """A module whose names raise NotSupported."""

    def __init__(self, name, instead):
        super().__init__(name, f"Kernel Tuner's module; instead: {instead}")
        self.__path__ = []  # its modules are found in sys.modules
        self._instead = instead

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotSupported(f"{self.__name__}.{name} is not supported by ergotune: {self._instead}")


def install(package):
    """Puts the modules in place."""
    for name, instead in MODULES.items():
        full = f"{package}.{name}"
        if full in sys.modules:
            continue
        module = sys.modules[full] = AbsentModule(full, instead)
        parent, _, last = full.rpartition(".")
        setattr(sys.modules[parent], last, module)
