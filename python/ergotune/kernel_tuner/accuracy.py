"""Arguments that depend on a parameter, and the error of a kernel's output."""

import re
from collections import UserDict
from typing import Any

import numpy as np

from ._tunable import option_of
from .observers.observer import OutputObserver


class Tunable(UserDict):
    """An argument chosen by a parameter: ``Tunable("layout", {"c": matrix, "f": matrix.T})``.

    Args:
        param_key: the parameter's name, an expression, or a function of the configuration.
        arrays: what to pass for each value; a list stands for 0, 1, ...
    """

    def __init__(self, param_key: Any, arrays: Any) -> None:
        super().__init__(dict(enumerate(arrays)) if isinstance(arrays, (tuple, list)) else arrays)
        self.param_key = param_key

    def select_for_configuration(self, params):
        """What is passed for a configuration; KeyError where nothing is given for it."""
        chosen = self.data[option_of(self, params)]
        return chosen.select_for_configuration(params) if isinstance(chosen, Tunable) else chosen

    def __call__(self, params):
        return self.select_for_configuration(params)


_FLOATS = {
    np.float16: ("half", "f16", "float16", "__half", "khalf", 16),
    np.float32: ("float", "single", "f32", "float32", "kfloat", 32),
    np.float64: ("double", "f64", "float64", "kdouble", 64),
}


def _to_float_dtype(x):
    name = x.lower() if isinstance(x, str) else x
    if name in ("bfloat16", "bf16", "kbfloat16", "__nv_bfloat16"):
        return _bfloat16()
    for dtype, names in _FLOATS.items():
        if name in names:
            return dtype
    return np.dtype(name)


def _bfloat16():
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise TypeError("NumPy has no bfloat16 of its own; install the package ml_dtypes") from None
    return bfloat16


class TunablePrecision(Tunable):
    """One array in several precisions: ``TunablePrecision("real", x, {"float": np.float32, "double": np.float64})``."""

    def __init__(self, param_key: Any, array: Any, dtypes: Any = None) -> None:
        if not dtypes:
            dtypes = {"half": np.half, "float": np.single, "double": np.double}
        if isinstance(dtypes, (list, tuple)):
            dtypes = {name: _to_float_dtype(name) for name in dtypes}
        converts = isinstance(array, np.generic) or hasattr(array, "__cuda_array_interface__") and hasattr(array, "astype")
        source = array if converts else np.array(array)
        super().__init__(param_key, {name: source.astype(dtype) for name, dtype in dtypes.items()})


def error_metric_from_name(user_key, EPS=1e-8):
    """A function of (answer, output) that gives one number.

    Names: MSE, RMSE, NRMSE, MAE, MRE, RMSRE, MALE, RMSLE, "max", "max rel", and their long forms; ``EPS`` keeps relative
    errors from dividing by 0.
    """
    metrics = {
        "mse": lambda a, b: np.mean((a - b) ** 2),
        "rmse": lambda a, b: np.sqrt(np.mean((a - b) ** 2)),
        "nrmse": lambda a, b: np.sqrt(np.mean((a - b) ** 2) / np.mean(a**2)),
        "mae": lambda a, b: np.mean(np.abs(a - b)),
        "mre": lambda a, b: np.mean(np.abs(a - b) / np.maximum(np.abs(a), EPS)),
        "rmsre": lambda a, b: np.sqrt(np.mean((a - b) ** 2 / np.maximum(a, EPS) ** 2)),
        "male": lambda a, b: np.mean(np.abs(np.log10(a + EPS) - np.log10(b + EPS))),
        "rmsle": lambda a, b: np.sqrt(np.mean((np.log10(a + EPS) - np.log10(b + EPS)) ** 2)),
        "max": lambda a, b: np.max(np.abs(a - b)),
        "maxrel": lambda a, b: np.max(np.abs(a - b) / np.maximum(np.abs(a), EPS)),
    }
    name = _short_name(user_key)
    if name not in metrics:
        raise ValueError(f"invalid error metric provided: {user_key}")
    return lambda a, b: metrics[name](np.asarray(a, np.float64), np.asarray(b, np.float64))


_WORDS = {"average": "m", "avg": "m", "mean": "m", "squared": "s", "square": "s", "sq": "s", "root": "r", "normalized": "n",
          "absolute": "a", "abs": "a", "relative": "rel", "rel": "rel", "logarithmic": "l", "log": "l", "maximum": "max"}
_LONG_NAMES = {("m", "s"): "mse", ("r", "m", "s"): "rmse", ("n", "r", "m", "s"): "nrmse", ("a",): "mae", ("m", "a"): "mae",
               ("rel",): "mre", ("m", "rel"): "mre", ("r", "m", "s", "rel"): "rmsre", ("m", "a", "l"): "male",
               ("r", "m", "s", "l"): "rmsle", ("max",): "max", ("max", "a"): "max", ("max", "rel"): "maxrel"}


def _short_name(key):
    words = [w for w in re.split(r"[\s_-]+", key.lower()) if w and w != "error"]
    if len(words) == 1 and words[0] not in _WORDS:
        return words[0]
    return _LONG_NAMES.get(tuple(_WORDS.get(w, w) for w in words), "")


class AccuracyObserver(OutputObserver):
    """The error of the output, under the name ``key``: the largest over the arguments that have an answer.

    Args:
        metric: a name of :func:`error_metric_from_name` (default RMSE), or a function of (answer, output).
        atol: keeps relative errors from dividing by 0.
    """

    def __init__(self, metric: Any = None, key: str = "error", *, atol: float = 1e-8) -> None:
        self.metric = metric if callable(metric) else error_metric_from_name(metric or "rmse", atol)
        self.key = key
        self.result = None

    def process_output(self, answers, outputs):
        self.result = max(self.metric(a, o) for a, o in zip(answers, outputs) if a is not None)

    def get_results(self):
        return {self.key: self.result}
