"""A result as a notebook and print() show it (the best configuration, its values with intervals, the gain, how sure it is, and where the
values come from), and as a figure."""

from __future__ import annotations

import html
import math
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np

from ._core import unit_of
from ._results import needed, value_of

if TYPE_CHECKING:
    from ._results import Result

#: Below this probability the rivals of the winner are as good within the noise.
_SURE = 0.6
#: Statuses of measurements that have values.
_WORKED = ("ok", "not_converged")


def _gain(result: Result) -> str:
    """How many times better than the default and the median, as the command prints it; for one objective."""
    document = result.document
    if document["objective"]["pareto"] or not document["best"]:
        return ""
    best: float = document["best"]["objective"]
    better, worse = ("faster", "slower") if result.objective == "time" else ("better", "worse")
    parts = []
    standard = result.default_measurement
    if standard and standard["status"] not in _WORKED:
        parts.append(f"the default configuration failed: {standard['message']}")
    if result.is_default:
        parts.append("the same as the default")
    elif gain := document["gain"]:
        ratio, half = gain["value"], gain["half_width"]
        factor = max(ratio, 1 / ratio)
        interval = f" ± {factor * half / ratio:.2g}" if half else ""
        uncertain = any(_is_vague(document[row]) for row in ("best", "default"))
        parts.append(f"{factor:.2f}x{interval} {better if ratio >= 1 else worse} than the default"
                     + (" (not certain: an interval is wider than its value)" if uncertain
                        else " (not certain: within the intervals)" if half and half >= abs(ratio - 1) else ""))
    other: Optional[float] = document["median"]
    if other and best > 0 and other > 0:
        ratio = best / other if result.direction.startswith("max") else other / best
        if ratio >= 1:  # noise or a condition may leave the best behind it
            parts.append(f"{ratio:.2f}x {better} than the median")
    return ", ".join(parts)


def _is_vague(row: Dict[str, Any]) -> bool:
    """Whether the interval of its objective is wider than the value."""
    half = row.get("half_width", 0)
    return half is None or half >= abs(row["objective"])  # None: unknown


def _certainty(result: Result) -> str:
    """How sure the winner is. Simulated and replayed values, fronts, and spaces of one configuration are not confirmed."""
    document = result.document
    if document["provenance"] != "measured" or document["objective"]["pareto"] or document["space"] == 1:
        return ""
    if result.probability_best is None and result.interrupted:
        return "no: the run was interrupted before; the same call with its store= goes on from there"
    if result.probability_best is None:
        if sum(document["statuses"].get(status, 0) for status in _WORKED) == 1:
            return "no: no other configuration worked, with which it would be compared"
        return "no: the best of the search may read better than it is; confirm=True measures it again, where the budget leaves evaluations for that"
    text = f"in {result.confirmation_repeats} paired repeats with its rivals: the best of them with {100 * result.probability_best:.0f} % probability"
    if result.expected_loss is not None:
        text += f", expected loss {100 * result.expected_loss:.2g} %"
    return text + f"; below {100 * _SURE:.0f} %: the rivals are as good within the noise" * (result.probability_best < _SURE)


def _title(result: Result) -> str:
    if result.best is None:
        return f"none of {len(result)} configurations worked{result.commonest_failure()}" + " (interrupted)" * result.interrupted
    return f"best of {len(result)} configurations" + " (interrupted)" * result.interrupted


def _rows(result: Result) -> List[Tuple[str, str]]:
    measurement = result.best_measurement
    if result.best is None or measurement is None:
        return []
    rows = [(name, str(value)) for name, value in result.document["best"]["configuration"].items()]
    repeats = result.confirmation_repeats
    few = (f"{repeats} repeats: too few" if repeats else "too few samples") + " for an interval narrower than the value"
    # "time", "gflops", "pareto(time, energy)"
    for name in dict.fromkeys([*re.findall(r"[A-Za-z_]\w*", result.objective), *measurement["metrics"]]):
        found = value_of(measurement, name)
        value, half = found["value"], found["half_width"]
        if math.isnan(value):
            continue
        unit = unit_of(name) or result.metric_units.get(name, "")
        interval = ""
        if half != 0 and value != 0:  # NaN: unknown
            interval = f" ± {half:.2g} (95 % interval)" if half < abs(value) else f" ({few})"
        rows.append((f"{name} ({unit})" if unit else name, f"{value:.5g}{interval}"))
    if "error" in measurement["quantities"]:
        error = value_of(measurement, "error")
        largest = f", largest relative error {error['value']:.2g}" if measurement["quantities"]["error"]["n"] else ""
        rows.append(("verified", f"outputs agree{largest} ({error['method']})"))
    elif result.verified:
        rows.append(("verified", result.verified))
    if measurement["status"] != "ok":
        status = measurement["status"] + " in the search" * bool(repeats)
        rows.append(("status", ": ".join(filter(None, (status, measurement["message"])))))
    rows += [(name, text) for name, text in (("gain", _gain(result)), ("confirmed", _certainty(result))) if text]
    texts = [*(text for text in measurement["warnings"] if text != result.verified), (result.search_repeats or {}).get("note", "")]
    rows += [("note", text) for text in texts if text]
    if result.commonest_failure():
        counts = ", ".join(f"{count} {status}" for status, count in result.document["statuses"].items())
        rows.append(("outcomes", counts + result.commonest_failure()))
    rows.append(("values are", ", ".join(sorted({q["provenance"] for q in measurement["quantities"].values()}))))
    return rows


def result_html(result: Result) -> str:
    title = f"<b>{html.escape(result.problem)}</b> on {html.escape(result.device)}: {html.escape(_title(result))}"
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in _rows(result))
    return f"{title}<table>{rows}</table>" if rows else title


def result_text(result: Result) -> str:
    rows = _rows(result)
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join([f"{result.problem} on {result.device}: {_title(result)}", *(f"  {name:<{width}}  {text}" for name, text in rows)])


def _label(name: str) -> str:
    unit = unit_of(name)
    return f"{name} ({unit})" if unit else name


def plot_result(result: Result, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None) -> Any:
    """Drawn by matplotlib, which is imported only here."""
    if result.best is None:
        raise ValueError(f"there is nothing to plot: none of {len(result)} configurations worked{result.commonest_failure()}")
    plt = needed("matplotlib.pyplot", "plot()", "plots")
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
