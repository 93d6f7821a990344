"""What a tuning run found, as plain Python, NumPy and pandas."""

import importlib
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray


#: How the description of a Python function begins that was tuned, and ends where it has no reference.
VERIFIED_WITH = "a Python function, verified with "
REFERENCE_IS_DEFAULT = "the outputs of the default configuration"
#: How a warning begins of a configuration none of whose outputs can be compared.
NOTHING_COMPARED = "nothing could be compared"


def as_text(value: Any) -> str:
    """As the native half writes a parameter's value."""
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    return str(value)


class Result:
    """The outcome of :func:`ergotune.tune`, or of a stored session (:func:`ergotune.show`).

    ``result["objective"]`` is ``result.document["objective"]``. A stored session has the names of objects that were values of
    parameters, and what only a run knows is empty, NaN or 0.

    Attributes:
        best: configuration of the winner (dict), or None when nothing worked.
        best_measurement: its measurement: ``status``, ``message``, ``quantities`` (each with ``value``, ``half_width`` of the 95 %
            interval, ``n``, ``method``, ``provenance``), ``metrics`` (values by name) and ``metric_half_widths``
            (None: unknown).
        document: the document of ``ergotune tune --json``, or ``show --json`` (``ergotune schema result``).
        front: its ``top``: for Pareto objectives all of the front, else the ten best, best first.
        configurations, measurements: every configuration measured or taken from the store, in order.
        default_measurement: that of the default configuration; None where it was not measured.
        evaluated, resumed: how many were measured in this run and how many were known.
        probability_best, expected_loss: how sure the winner is; None when it was not measured again.
        search_repeats: how the search's values repeated when the best were measured again: ``factor``, their median ratio,
            ``deviation`` of its logarithm and ``n``; None when nothing was.
        importance: ``shares`` of the objective's variance by parameter or pair, each with its 95 % interval (``low``,
            ``high``), and ``ruled_out``, the values that never worked; as in ``--json``, modelled.
        devices: where several measured: dicts with ``device``, ``id``, ``measured``, ``idle_seconds`` and ``factors``, what each
            takes of a quantity where their mean takes 1.
        seconds: wall time of the run; tuner_seconds: ergotune's own share of it; waited_seconds: before it, while another session
            measured on the device.
        strategy, explanation: the strategy, and why it chose as it did.
        stopped_because: why the run ended; interrupted: whether by Ctrl-C.
        notes: what ergotune noticed, as the command prints it.
        store, session: where the results are kept, the file and the number in it; None without ``store=``.
        problem, device, objective, direction: names, and "min" or "max".
    """

    def __init__(self, raw: Dict[str, Any]) -> None:
        raw = dict(raw)
        self.parameter_names: List[str] = raw.pop("parameter_names")
        self.configurations: List[Dict[str, Any]] = raw.pop("configurations")
        self.measurements: List[Dict[str, Any]] = raw.pop("measurements")
        self.metric_units: Dict[str, str] = raw.pop("metric_units")
        self._confirmed: List[int] = raw.pop("confirmed")
        self._best_row: Optional[int] = raw.pop("best_row")
        self._default_row: Optional[int] = raw.pop("default_row")
        self.evaluator: str = raw.pop("evaluator", "")
        self.interrupted: bool = raw.pop("interrupted", False)
        self.document: Dict[str, Any] = raw
        self.problem: str = raw["problem"]
        self.device: str = raw["device_name"]
        self.objective: str = raw["objective"]["name"]
        self.direction: str = raw["objective"]["direction"]
        self.front: List[Dict[str, Any]] = raw["top"]
        self.evaluated: int = raw.get("evaluated", 0)
        self.resumed: int = raw.get("resumed", len(self.measurements))
        self.seconds: float = raw.get("seconds", float("nan"))
        self.waited_seconds: float = raw.get("waited_seconds", float("nan"))
        self.tuner_seconds: float = raw.get("tuner_seconds", float("nan"))
        self.strategy: str = raw.get("strategy", "")
        self.explanation: str = raw.get("explanation", "")
        self.stopped_because: str = raw.get("stopped_because", "")
        winner: Dict[str, Any] = raw["best"] or {}
        self.probability_best: Optional[float] = winner.get("probability_best")
        self.expected_loss: Optional[float] = winner.get("expected_loss")
        self.confirmation_repeats: int = winner.get("confirmation_repeats", 0)
        self.search_repeats: Optional[Dict[str, Any]] = raw.get("search_repeats")
        self.importance: Dict[str, Any] = raw["importance"]
        self.devices: List[Dict[str, Any]] = raw.get("devices", [])
        self.store: Optional[str] = raw["store"]
        self.session: Optional[int] = raw["session"]
        self.notes: List[str] = raw["notes"]
        #: How outputs were verified, where that is not a quantity: of Python functions.
        self.verified = self._verified()
        #: Of a Python function, by parameter: what was given, by the name that it is kept by.
        self._given: Dict[str, Dict[str, Any]] = {}
        #: The page that ``watch=True`` has shown; it lives as long as this.
        self.page: Any = None

    @property
    def best(self) -> Optional[Dict[str, Any]]:
        """The winner's parameters, of a Python function with the objects that were given for it (``function(*arguments, **result.best)``
        runs it); None when nothing worked."""
        if not self.document["best"]:
            return None
        named = self.document["best"]["configuration"]
        return {name: self._given.get(name, {}).get(as_text(value), value) for name, value in named.items()}

    def _verified(self) -> str:
        description = self.document["attributes"].get("description", "")
        _, of_function, reference = description.partition(VERIFIED_WITH) if isinstance(description, str) else ("", "", "")
        measurement = self.best_measurement
        if not of_function or measurement is None or reference.startswith("nothing"):
            return ""
        if why := next((text for text in measurement["warnings"] if text.startswith(NOTHING_COMPARED)), ""):
            return why
        default = self.default_measurement
        if reference == REFERENCE_IS_DEFAULT and (default is None or default["status"] not in ("ok", "not_converged")):
            reference = "the outputs of the first configuration that ran"
        return f"outputs agree with {reference}".replace("the outputs of", "those of")

    @property
    def best_measurement(self) -> Optional[Dict[str, Any]]:
        """The winner's measurement."""
        return None if self._best_row is None else self.measurements[self._best_row]

    @property
    def default_measurement(self) -> Optional[Dict[str, Any]]:
        """The measurement of the default configuration; None where it was not measured."""
        return None if self._default_row is None else self.measurements[self._default_row]

    @property
    def is_default(self) -> bool:
        """Whether the winner is the default configuration."""
        return self._best_row is not None and self._best_row == self._default_row

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __contains__(self, key: object) -> bool:
        return key in self.document

    __iter__ = None  # it could give keys of the document or configurations: use keys(), or the lists above

    def get(self, key: str, otherwise: Any = None) -> Any:
        """``document.get(key)``."""
        return self.document.get(key, otherwise)

    def keys(self) -> Any:
        """Those of ``document``, so that ``dict(result)`` is a copy of it."""
        return self.document.keys()

    def __len__(self) -> int:
        return len(self.configurations)

    def __repr__(self) -> str:
        found = f"best {self.document['best']['configuration']}" if self.document["best"] else f"nothing worked{self.commonest_failure()}"
        return f"<ergotune.Result of {self.problem} on {self.device}: {len(self)} configurations, {found}>"

    def __str__(self) -> str:
        from ._views import result_text

        return result_text(self)

    def commonest_failure(self) -> str:
        """", most of all STATUS: the line that says why"; empty where nothing failed."""
        if not self.document["failures"]:
            return ""
        commonest = self.document["failures"][0]
        lines = commonest["message"].splitlines()
        telling = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
        return f", most of all {commonest['status']}: {telling}"

    def quantities(self) -> List[str]:
        """Names of every quantity and metric that was measured."""
        return _quantities(self.measurements)

    def to_numpy(self) -> NDArray[Any]:
        """A structured array: one field per parameter, ``status``, and one per quantity (NaN where it has none).

        Shape (number of configurations,). Quantities are in SI units. One that has the name of a parameter gets a field with a
        ``_`` behind its name.
        """
        columns = _columns(self.configurations, self.measurements, self.parameter_names)
        table = np.empty(len(self), dtype=[(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            table[name] = column
        return table

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of the same, with the half-width of each 95 % interval (``time_half_width``), the ``message`` of
        failures, ``warnings`` (such as "stopped early"), ``confirmed``, how often a configuration was measured again, ``default``, whether it
        is the default one, and ``provenance`` ("measured", "simulated", ...). Needs pandas (the extra ``tables``)."""
        return frame(self.configurations, self.measurements, self.parameter_names, self._confirmed, self._default_row)

    def watch(self, *, page: Optional[bool] = None, height: int = 760) -> Any:
        """The page on its session (:func:`ergotune.watch`): what was found, to be explored. Needs a ``store=``."""
        from ._watch import watch

        if not self.store:
            raise ValueError("nothing was kept that a page could show: tune with store=\"results.db\"")
        return watch(self.store, session=self.session or 0, page=page, height=height)

    def plot(self, x: Optional[str] = None, y: Optional[str] = None, ax: Any = None) -> Any:
        """Scatter plot with matplotlib; by default energy over time where both were measured, else the objective over
        the order of evaluation with the best so far. Returns the axes. Needs matplotlib (the extra ``plots``)."""
        from ._views import plot_result

        return plot_result(self, x, y, ax)

    def _repr_html_(self) -> str:
        from ._views import result_html

        return result_html(self)


def _quantities(measurements: Sequence[Dict[str, Any]]) -> List[str]:
    names: Dict[str, None] = {}
    for measurement in measurements:
        names.update(dict.fromkeys(measurement["quantities"]))
        names.update(dict.fromkeys(measurement["metrics"]))
    return list(names)


def _columns(configurations: Sequence[Dict[str, Any]], measurements: Sequence[Dict[str, Any]], parameter_names: Sequence[str],
             confirmed: Optional[Sequence[int]] = None, default_row: Optional[int] = None) -> Dict[str, NDArray[Any]]:
    """The columns of a table; with ``confirmed`` also those that only tables of mixed types have."""
    columns = {name: np.array([c[name] for c in configurations]) for name in parameter_names}

    def add(name: str, values: List[Any], kind: Any) -> None:
        while name in columns:
            name += "_"
        columns[name] = np.array(values, dtype=kind)

    add("status", [m["status"] for m in measurements], str)
    for name in _quantities(measurements):
        values = [value_of(m, name) for m in measurements]
        add(name, [value["value"] for value in values], float)
        if confirmed is not None:
            add(f"{name}_half_width", [value["half_width"] for value in values], float)
    if confirmed is not None:
        add("message", [m.get("message") or "" for m in measurements], str)
        add("warnings", ["; ".join(m["warnings"]) for m in measurements], str)
        add("confirmed", list(confirmed), int)
        add("default", [row == default_row for row in range(len(confirmed))], bool)
        add("provenance", [", ".join(sorted({q["provenance"] for q in m["quantities"].values()})) for m in measurements], str)
    return columns


def frame(configurations: Sequence[Dict[str, Any]], measurements: Sequence[Dict[str, Any]], parameter_names: Sequence[str],
          confirmed: Sequence[int], default_row: Optional[int]) -> Any:
    """The pandas.DataFrame of :meth:`Result.to_pandas`; ``Recording.to_pandas`` calls it too."""
    return needed("pandas", "to_pandas()", "tables").DataFrame(_columns(configurations, measurements, parameter_names, confirmed, default_row))


def needed(module: str, what: str, extra: str) -> Any:
    """The module of a package that only an extra of ergotune installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs {package}: pip install {package}, or ergotune with its extra: pip install 'ergotune[{extra}]'") from error


def value_of(measurement: Dict[str, Any], name: str) -> Dict[str, Any]:
    """``value`` and ``half_width`` of a quantity or a metric; NaN where it has none."""
    quantity: Optional[Dict[str, Any]] = measurement["quantities"].get(name)
    nan = float("nan")
    half_width = measurement["metric_half_widths"].get(name)
    return quantity or {"value": measurement["metrics"].get(name, nan), "half_width": nan if half_width is None else half_width}
