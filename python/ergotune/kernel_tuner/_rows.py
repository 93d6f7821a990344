"""Result rows as Kernel Tuner has them: its names, its units (ms), objects for failures, JSON of NumPy's objects."""

import json
from typing import Any

import numpy as np

from .. import _core


class ErrorConfig(str):
    """A failure. It equals its own name, so that rows read from a file and rows of this run compare alike."""

    def __new__(cls, *_):
        return super().__new__(cls, cls.__name__)

    def __repr__(self):
        return self.__class__.__name__

    def __reduce__(self):
        return (self.__class__, ())


class InvalidConfig(ErrorConfig):
    """The device cannot run it."""


class CompilationFailedConfig(ErrorConfig):
    """It does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """It crashed, hung, or its output is wrong."""


class SkippableFailure(Exception):
    """Kernel Tuner's name for a failure that is one configuration's."""


class StopCriterionReached(Exception):
    """Kernel Tuner's name for a budget that is spent."""


BY_NAME = {kind.__name__: kind for kind in (ErrorConfig, InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}

#: ergotune's statuses as Kernel Tuner's errors.
BY_STATUS = {
    "compile_error": CompilationFailedConfig, "launch_error": RuntimeFailedConfig, "runtime_error": RuntimeFailedConfig,
    "timeout": RuntimeFailedConfig, "wrong_result": RuntimeFailedConfig, "unsupported": InvalidConfig,
}


def check_result_type(row):
    """Whether a row's error, where it has one, is an error object."""
    return "__error__" not in row or isinstance(row["__error__"], ErrorConfig)


# Kernel Tuner has the time of a configuration by itself, and no word for what is known of its code or its outputs
_NOT_OBSERVED = {"time"} | {name for name, q in _core.quantities().items() if q["producer"] in ("compiler", "verification")}


def row_of(configuration, measurement, iterations, objectives=("time",)):
    """One configuration's row. A failure has its error object as ``__error__``, and as the value of each objective."""
    row = dict(configuration)
    quantities = measurement["quantities"]
    if measurement["status"] in ("ok", "not_converged"):
        row["time"] = quantities["time"]["value"] * 1e3
        times = [t * 1e3 for t in measurement["times"]] or [row["time"]]
        row["times"] = times[:iterations] if iterations else times
        row.update({name: q["value"] for name, q in quantities.items() if name not in _NOT_OBSERVED})
    else:
        error = BY_STATUS.get(measurement["status"], RuntimeFailedConfig)()
        row["__error__"] = error
        row.update(dict.fromkeys(("time", *objectives), error))
    row["compile_time"] = measurement["compile_seconds"] * 1e3
    row["verification_time"] = measurement["verify_seconds"] * 1e3
    row["benchmark_time"] = measurement["measure_seconds"] * 1e3
    row["strategy_time"] = 0.0
    row["framework_time"] = measurement["tuner_seconds"] * 1e3
    return row


class NpEncoder(json.JSONEncoder):
    """NumPy's scalars and arrays as plain numbers and lists; anything else as its text."""

    def default(self, obj: Any) -> Any:
        if isinstance(obj, np.generic):
            return obj.item()
        if isinstance(obj, np.ndarray):
            return obj.tolist()
        return str(obj)


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's."""
    return value.item() if isinstance(value, np.generic) else value
