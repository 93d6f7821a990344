"""What a tuning run found, as plain Python, NumPy and pandas."""

import numpy as np


class Result:
    """The outcome of :func:`ergotune.tune`.

    Attributes:
        best: configuration of the winner (dict), or None when nothing worked.
        best_measurement: its measurement (dict with ``status``, ``quantities``, ``metrics``).
        front: for Pareto objectives all of the front, else the confirmed candidates, best first.
        configurations, measurements: every configuration measured or taken from the store, in order.
        evaluated, resumed: how many were measured in this run and how many were known.
        seconds: wall time of the run; tuner_seconds: ergotune's own share of it.
    """

    def __init__(self, raw):
        self._raw = raw
        self.problem = raw["problem"]
        self.device = raw["device"]
        self.objective = raw["objective"]
        self.direction = raw["direction"]
        self.parameter_names = raw["parameter_names"]
        self.configurations = raw["configurations"]
        self.measurements = raw["measurements"]
        self.front = raw["best"]
        self.evaluated = raw["evaluated"]
        self.resumed = raw["resumed"]
        self.seconds = raw["seconds"]
        self.tuner_seconds = raw["tuner_seconds"]
        self.strategy = raw["strategy"]
        self.explanation = raw["explanation"]
        self.stopped_because = raw["stopped_because"]
        self.probability_best = raw["probability_best"]
        self.confirmation_rounds = raw.get("confirmation_rounds", 0)
        self.store = raw.get("store")
        self.session = raw.get("session")
        self.notes = raw.get("notes", [])

    @property
    def best(self):
        return self.front[0]["configuration"] if self.front else None

    @property
    def best_measurement(self):
        return self.front[0]["measurement"] if self.front else None

    def __len__(self):
        return len(self.configurations)

    def __repr__(self):
        return f"<ergotune.Result of {self.problem} on {self.device}: {len(self)} configurations, best {self.best}>"

    def quantities(self):
        """Names of every quantity and metric that was measured."""
        names = {}
        for measurement in self.measurements:
            names.update(dict.fromkeys(measurement["quantities"]))
            names.update(dict.fromkeys(measurement["metrics"]))
        return list(names)

    def to_numpy(self):
        """A structured array: one field per parameter, ``status``, and one per quantity (NaN where it has none).

        Shape (number of configurations,). Quantities are in SI units.
        """
        fields, columns = [], []
        for name in self.parameter_names:
            column = np.array([c[name] for c in self.configurations])
            fields.append((name, column.dtype))
            columns.append(column)
        status = np.array([m["status"] for m in self.measurements])
        fields.append(("status", status.dtype if len(status) else "U1"))
        columns.append(status)
        for name in self.quantities():
            fields.append((name, float))
            columns.append(np.array([_value(m, name) for m in self.measurements]))
        table = np.empty(len(self.configurations), dtype=fields)
        for (name, _), column in zip(fields, columns):
            table[name] = column
        return table

    def to_pandas(self):
        """The same as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame.from_records(self.to_numpy())

    def plot(self, x=None, y=None, ax=None):
        """Scatter plot with matplotlib; by default energy over time where both were measured, else the objective over
        the order of evaluation with the best so far. Returns the axes."""
        from ._plots import plot_result

        return plot_result(self, x, y, ax)

    def _repr_html_(self):
        rows = "".join(f"<tr><td>{k}</td><td><code>{v}</code></td></tr>" for k, v in (self.best or {}).items())
        return f"<b>{self.problem}</b> on {self.device}: best of {len(self)} configurations<table>{rows}</table>"


def _value(measurement, name):
    quantity = measurement["quantities"].get(name)
    if quantity is not None:
        return quantity["value"]
    return measurement["metrics"].get(name, float("nan"))
