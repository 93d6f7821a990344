"""Measurements as Kernel Tuner's result rows: its names, its units (ms)."""

from .. import _core
from ._errors import BY_STATUS, RuntimeFailedConfig

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
