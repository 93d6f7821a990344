"""What a tuning run found, as plain Python, NumPy and pandas."""

from collections import Counter
from typing import Any, Dict, List, Optional

import numpy as np
from numpy.typing import NDArray


class Result:
    """The outcome of :func:`ergotune.tune`.

    Attributes:
        best: configuration of the winner (dict), or None when nothing worked.
        best_measurement: its measurement (dict with ``status``, ``quantities``, ``metrics``).
        document: the document of ``ergotune tune --json`` (``ergotune schema result``).
        front: its ``top``: for Pareto objectives all of the front, else the ten best, best first.
        configurations, measurements: every configuration measured or taken from the store, in order.
        evaluated, resumed: how many were measured in this run and how many were known.
        probability_best, expected_loss: how sure the winner is; None when it was not measured again.
        search_repeats: how the search's values repeated when the best were measured again: ``factor``, their median ratio,
            ``deviation`` of its logarithm and ``n``; None when nothing was.
        importance: ``shares`` of the objective's variance by parameter or pair, each with its 95 % interval (``low``,
            ``high``), and ``ruled_out``, the values that never worked; as in ``--json``, modelled.
        devices: where several measured: dicts with ``device``, ``id``, ``measured``, ``idle_seconds`` and ``factors``, what each
            takes of a quantity where their mean takes 1.
        seconds: wall time of the run; tuner_seconds: ergotune's own share of it.
    """

    def __init__(self, raw: Dict[str, Any]) -> None:
        raw = dict(raw)
        self.parameter_names: List[str] = raw.pop("parameter_names")
        self.configurations: List[Dict[str, Any]] = raw.pop("configurations")
        self.measurements: List[Dict[str, Any]] = raw.pop("measurements")
        self._best_row: Optional[int] = raw.pop("best_row")
        self.evaluator: str = raw.pop("evaluator")
        self.interrupted: bool = raw.pop("interrupted")
        self.document: Dict[str, Any] = raw
        self.problem: str = raw["problem"]
        self.device: str = raw["device_name"]
        self.objective: str = raw["objective"]["name"]
        self.direction: str = raw["objective"]["direction"]
        self.front: List[Dict[str, Any]] = raw["top"]
        self.evaluated: int = raw["evaluated"]
        self.resumed: int = raw["resumed"]
        self.seconds: float = raw["seconds"]
        self.tuner_seconds: float = raw["tuner_seconds"]
        self.strategy: str = raw["strategy"]
        self.explanation: str = raw.get("explanation", "")
        self.stopped_because: str = raw["stopped_because"]
        winner = raw["best"] or {}
        self.probability_best: Optional[float] = winner.get("probability_best")
        self.expected_loss: Optional[float] = winner.get("expected_loss")
        self.confirmation_repeats: int = winner.get("confirmation_repeats", 0)
        self.search_repeats: Optional[Dict[str, Any]] = raw.get("search_repeats")
        self.importance: Dict[str, Any] = raw["importance"]
        self.devices: List[Dict[str, Any]] = raw.get("devices", [])
        self.store: Optional[str] = raw["store"]
        self.session: Optional[int] = raw["session"]
        self.notes: List[str] = raw["notes"]
        #: The page that ``watch=True`` has shown; it lives as long as this.
        self.page: Any = None

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The winner's parameters; None when nothing worked."""
        return self.front[0]["configuration"] if self.front else None

    @property
    def best_measurement(self) -> Optional[Dict[str, Any]]:
        """The winner's measurement."""
        return None if self._best_row is None else self.measurements[self._best_row]

    def __len__(self) -> int:
        return len(self.configurations)

    def __repr__(self) -> str:
        found = f"best {self.best}" if self.front else f"nothing worked{self._commonest_failure()}"
        return f"<ergotune.Result of {self.problem} on {self.device}: {len(self)} configurations, {found}>"

    def _commonest_failure(self) -> str:
        """", most of all STATUS: the line that says why"."""
        failures = Counter((m["status"], m.get("message") or "") for m in self.measurements)
        if not failures:
            return ""
        (status, message), _ = failures.most_common(1)[0]
        lines = message.splitlines()
        telling = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        return f", most of all {status}: {telling}"

    def quantities(self) -> List[str]:
        """Names of every quantity and metric that was measured."""
        names: Dict[str, None] = {}
        for measurement in self.measurements:
            names.update(dict.fromkeys(measurement["quantities"]))
            names.update(dict.fromkeys(measurement["metrics"]))
        return list(names)

    def to_numpy(self) -> NDArray[Any]:
        """A structured array: one field per parameter, ``status``, and one per quantity (NaN where it has none).

        Shape (number of configurations,). Quantities are in SI units. One that has the name of a parameter gets a field with a
        ``_`` behind its name.
        """
        fields: List[Any] = []
        columns: List[NDArray[Any]] = []
        for name in self.parameter_names:
            column = np.array([c[name] for c in self.configurations])
            fields.append((name, column.dtype))
            columns.append(column)
        taken = set(self.parameter_names)

        def free(name: str) -> str:
            while name in taken:
                name += "_"
            taken.add(name)
            return name

        status = np.array([m["status"] for m in self.measurements])
        fields.append((free("status"), status.dtype if len(status) else "U1"))
        columns.append(status)
        for name in self.quantities():
            fields.append((free(name), float))
            columns.append(np.array([_value(m, name) for m in self.measurements]))
        table = np.empty(len(self.configurations), dtype=fields)
        for (name, _), column in zip(fields, columns):
            table[name] = column
        return table

    def to_pandas(self) -> Any:
        """The same as a pandas.DataFrame."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame.from_records(self.to_numpy())

    def watch(self, *, page: Optional[bool] = None, height: int = 760) -> Any:
        """The page on its session (:func:`ergotune.watch`): what was found, to be explored. Needs a ``store=``."""
        from ._watch import watch

        if not self.store:
            raise ValueError("nothing was kept that a page could show: tune with store=\"results.db\"")
        return watch(self.store, session=self.session or 0, page=page, height=height)

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None) -> Any:
        """Scatter plot with matplotlib; by default energy over time where both were measured, else the objective over
        the order of evaluation with the best so far. Returns the axes."""
        from ._plots import plot_result

        return plot_result(self, x, y, ax)

    def _repr_html_(self) -> str:
        from ._html import result_html

        return result_html(self)


def _value(measurement: Dict[str, Any], name: str) -> float:
    quantity = measurement["quantities"].get(name)
    if quantity is not None:
        return float(quantity["value"])
    return float(measurement["metrics"].get(name, float("nan")))
