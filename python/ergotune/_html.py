"""A result as a notebook shows it: the best configuration, its values with intervals, the gain, and where the values come from."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Dict

from ._core import unit_of

if TYPE_CHECKING:
    from ._results import Result


def _value(measurement: Dict[str, Any], name: str) -> Dict[str, Any]:
    quantity: Dict[str, Any] = measurement["quantities"].get(name) or {"value": measurement["metrics"].get(name)}
    return quantity


def _gain(result: Result) -> str:
    """How many times better than the default and the median, as the command prints it; for one objective."""
    document = result.document
    if document["objective"]["pareto"] or not document["best"]:
        return ""
    best: float = document["best"]["objective"]
    others = {"default": (document["default"] or {}).get("objective"), "median": document["median"]}
    ratios = {name: best / other if result.direction.startswith("max") else other / best
              for name, other in others.items() if other and best > 0 and other > 0}
    better, worse = ("faster", "slower") if result.objective == "time" else ("better", "worse")
    return ", ".join(f"{max(ratio, 1 / ratio):.2f}x {better if ratio >= 1 else worse} than the {name}" for name, ratio in ratios.items())


def result_html(result: Result) -> str:
    title = f"<b>{html.escape(result.problem)}</b> on {html.escape(result.device)}: "
    measurement = result.best_measurement
    if result.best is None or measurement is None:
        return title + f"none of {len(result)} configurations worked"
    rows = [(name, str(value)) for name, value in result.best.items()]
    # "time", "gflops", "pareto(time, energy)"
    names = [n for n in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", result.objective)) if _value(measurement, n)["value"] is not None]
    for name in names:
        quantity = _value(measurement, name)
        half = quantity.get("half_width")
        interval = f" ± {half:.2g} (95 % interval)" if half else ""
        unit = unit_of(name)
        rows.append((f"{name} ({unit})" if unit else name, f"{quantity['value']:.5g}{interval}"))
    if gain := _gain(result):
        rows.append(("gain", gain))
    provenance = sorted({q["provenance"] for q in measurement["quantities"].values()})
    rows.append(("values are", ", ".join(provenance)))
    table = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"{title}best of {len(result)} configurations<table>{table}</table>"
