"""A result as a notebook shows it: the best configuration, its values with intervals, the gain, and where the values come from."""

from __future__ import annotations

import html
import re
import statistics
from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    from ._results import Result


def _value(measurement: Dict[str, Any], name: str) -> Dict[str, Any]:
    quantity: Dict[str, Any] = measurement["quantities"].get(name) or {"value": measurement["metrics"].get(name)}
    return quantity


def _gain(result: Result, name: str, best: float) -> str:
    """How many times as good as the median of everything that worked; for one objective."""
    values: List[float] = [v for m in result.measurements if m["status"] == "ok" and (v := _value(m, name)["value"]) is not None]
    if len(values) < 2 or best == 0 or statistics.median(values) == 0:
        return ""
    ratio = statistics.median(values) / best
    ratio = 1 / ratio if result.direction.startswith("max") else ratio
    return f"{ratio:.2f} times as good as the median of {len(values)} configurations"


def result_html(result: Result) -> str:
    title = f"<b>{html.escape(result.problem)}</b> on {html.escape(result.device)}: "
    measurement = result.best_measurement
    if result.best is None or measurement is None:
        return title + f"none of {len(result)} configurations worked"
    rows = [(name, str(value)) for name, value in result.best.items()]
    # "time", "gflops", "pareto(time, energy)"
    names = [n for n in re.findall(r"[A-Za-z_]\w*", result.objective) if _value(measurement, n)["value"] is not None]
    for name in names:
        quantity = _value(measurement, name)
        half = quantity.get("half_width")
        interval = f" ± {half:.2g} (95 % interval)" if half else ""
        rows.append((name, f"{quantity['value']:.5g}{interval}"))
    if len(names) == 1 and (gain := _gain(result, names[0], _value(measurement, names[0])["value"])):
        rows.append(("gain", gain))
    provenance = sorted({q["provenance"] for q in measurement["quantities"].values()})
    rows.append(("values are", ", ".join(provenance)))
    table = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"{title}best of {len(result)} configurations<table>{table}</table>"
