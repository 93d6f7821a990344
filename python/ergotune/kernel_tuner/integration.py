"""Files of best configurations, and the header made of them."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Optional

from ._rows import NpEncoder
from .util import get_objective_defaults, looks_like_a_filename, read_file


def store_results(results_filename: str, kernel_name: str, kernel_string: Any, tune_params: Dict[str, Any], problem_size: Any,
                  results: List[Dict[str, Any]], env: Dict[str, Any], top: float = 3, objective: Optional[str] = None,
                  objective_higher_is_better: Optional[bool] = None) -> None:
    """Adds the best configurations to a JSON file in Kernel Tuner's format 1.0.

    Those within ``top`` per cent of the best are stored, and replace what the file holds of this device and problem size.
    Raises ValueError where the file is of another kernel, other parameters or another objective.
    """
    objective, higher = get_objective_defaults(objective, objective_higher_is_better)
    usable = [row for row in results if isinstance(row.get(objective), (int, float)) and "__error__" not in row]
    if not usable:
        raise ValueError(f"no result has the objective {objective!r}: there is nothing to store")
    best = (max if higher else min)(row[objective] for row in usable)

    def near(value):
        return value == best or (value > best * (1 - top / 100) if higher else value < best * (1 + top / 100))

    meta, data = _begin(results_filename, kernel_name, kernel_string, tune_params, objective, higher)
    sizes = problem_size if isinstance(problem_size, (list, tuple)) else (problem_size,)
    key = {"device_name": _word(env["device_name"]), "problem_size": "x".join(str(s) for s in sizes)}
    data = [d for d in data if any(d[k] != v for k, v in key.items())]
    data += [{**key, "tunable_parameters": {n: row[n] for n in tune_params}, objective: row[objective]}
             for row in usable if near(row[objective])]
    Path(results_filename).write_text(json.dumps({**meta, "data": data}, cls=NpEncoder, indent=""))


def _begin(filename, kernel_name, kernel_string, tune_params, objective, higher):
    if not Path(filename).is_file():
        meta = {"version_number": "1.0", "kernel_name": kernel_name, "objective": objective,
                "objective_higher_is_better": higher, "tunable_parameters": list(tune_params)}
        if isinstance(kernel_string, (str, Path)):
            named = looks_like_a_filename(kernel_string) and Path(kernel_string).is_file()
            meta["kernel_string"] = read_file(kernel_string) if named else str(kernel_string)
        return meta, []
    meta, data = _read_results_file(filename)
    if meta["kernel_name"] != kernel_name:
        raise ValueError(f"Mismatch between given kernel_name and results file: {filename} is of {meta['kernel_name']}")
    if any(name not in meta["tunable_parameters"] for name in tune_params):
        raise ValueError("Mismatch between tunable_parameters in results file and tune_params")
    if meta["objective"] != objective:
        raise ValueError(f"Mismatch between given objective and results file: {filename} is for {meta['objective']}")
    return meta, data


def _word(name):
    return re.sub("[^0-9a-zA-Z]+", "_", name.strip())


def _read_results_file(results_filename):
    document = json.loads(Path(results_filename).read_text())
    if document.get("version_number") != "1.0":
        raise ValueError(f"{results_filename} is not a results file of version 1.0")
    data = document.pop("data")
    document.setdefault("objective_higher_is_better", False)
    document.setdefault("kernel_string", "")
    for entry in data:
        missing = [k for k in ("tunable_parameters", document["objective"], "device_name", "problem_size") if k not in entry]
        missing += [n for n in document["tunable_parameters"] if n not in entry.get("tunable_parameters", {})]
        if missing:
            raise ValueError(f"Error while parsing results file, missing keys {missing} in: {entry}")
    return document, data


class TuneResults:
    """A results file, read."""

    def __init__(self, results_filename):
        if not Path(results_filename).is_file():
            raise ValueError(f"Error: results_filename does not exist: {results_filename}")
        self.meta, self.data = _read_results_file(results_filename)
        if not self.data:
            raise ValueError("results file seems to be empty or did not load correctly")
        self.objective = self.meta["objective"]
        self.objective_higher_is_better = self.meta["objective_higher_is_better"]

    def get_best_config(self, gpu_name="default", problem_size=None):
        """Parameters of the best configuration of a device and problem size; where the file has no such result, those that
        are among the best for most sizes (and devices)."""
        gpu_name = re.sub("[- ]", "_", gpu_name)
        of_device = [d for d in self.data if d["device_name"] == gpu_name]
        if of_device and problem_size:
            sizes = problem_size if isinstance(problem_size, (list, tuple)) else (problem_size,)
            of_size = [d for d in of_device if d["problem_size"] == "x".join(str(s) for s in sizes)]
            if of_size:
                choose = max if self.objective_higher_is_better else min
                return dict(choose(of_size, key=lambda d: d[self.objective])["tunable_parameters"])
        return self._commonest(of_device or self.data)

    def _commonest(self, rows):
        counts, totals, parameters = {}, {}, {}
        for row in rows:
            key = tuple(row["tunable_parameters"].items())
            counts[key] = counts.get(key, 0) + 1
            totals[key] = totals.get(key, 0) + row[self.objective]
            parameters[key] = row["tunable_parameters"]
        most = max(counts.values())
        choose = max if self.objective_higher_is_better else min
        return dict(parameters[choose((k for k in counts if counts[k] == most), key=totals.__getitem__)])


def create_device_targets(header_filename: str, results_filename: str, objective: Optional[str] = None,
                          objective_higher_is_better: Optional[bool] = None) -> None:
    """Writes a C header with the best configuration of each device (``-DTARGET_<device>``) and a default."""
    get_objective_defaults(objective, objective_higher_is_better)
    results = TuneResults(results_filename)

    def defines(params):
        return "\n".join(f"#define {name} {value}" for name, value in params.items())

    lines = []
    for i, device in enumerate(sorted({d["device_name"] for d in results.data})):
        condition = f"#elif TARGET_{device}" if i else f"#ifdef TARGET_{device}"
        lines.append(f"\n{condition}\n{defines(results.get_best_config(device))}\n")
    Path(header_filename).write_text(
        "/* made by ergotune.kernel_tuner.create_device_targets; do not edit */\n#pragma once\n"
        f"#ifndef kernel_tuner /* while tuning, the tuner defines these */\n{''.join(lines)}\n"
        f"#else /* default configuration */\n{defines(results.get_best_config())}\n#endif\n\n#endif /* kernel_tuner */\n")
