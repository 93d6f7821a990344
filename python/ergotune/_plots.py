"""Plots with matplotlib, imported only when asked for."""

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ._core import unit_of

if TYPE_CHECKING:
    from ._results import Result


def _label(name: str) -> str:
    unit = unit_of(name)
    return f"{name} ({unit})" if unit else name


def plot_result(result: "Result", x: Optional[str] = None, y: Optional[str] = None, ax: Any = None) -> Any:
    import matplotlib.pyplot as plt  # type: ignore[import-untyped,import-not-found,unused-ignore]

    if ax is None:
        _, ax = plt.subplots()
    table = result.to_numpy()
    names = table.dtype.names or ()
    if x is None and y is None and "energy" in names and "time" in names:
        x, y = "time", "energy"
    if x is None:
        y = y or (result.objective if result.objective in names else "time")
        values = table[y]
        order = np.arange(1, len(values) + 1)
        ax.plot(order, values, ".", alpha=0.5)
        running = np.fmax.accumulate if result.direction == "max" else np.fmin.accumulate
        ax.step(order, running(values), where="post")
        ax.set_xlabel("configurations")
    else:
        ax.plot(table[x], table[y or "time"], ".", alpha=0.6)
        ax.set_xlabel(_label(x))
    ax.set_ylabel(_label(y or "time"))
    ax.set_title(f"{result.problem} on {result.device}")
    return ax
