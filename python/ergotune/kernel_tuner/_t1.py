"""Tuning from a T1 input file."""

import ast
import json
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import numpy as np

from .file_utils import get_t4_metadata, get_t4_results, import_class_from_file
from .interface import tune_kernel
from .strategies.wrapper import OptAlgWrapper
from .util import evaluate

_TYPES = {"float": np.float32, "double": np.float64, "int32": np.int32, "int": np.int32, "uint32": np.uint32}


def tune_kernel_T1(input_filepath: Any, cache_filepath: Any = None, objective: str = "time", objective_higher_is_better: bool = False,
                   simulation_mode: bool = False, output_T4: bool = True, iterations: int = 7, device: Any = None,
                   strategy: Any = None, strategy_options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Any]:
    """Tunes what a T1 file describes; gives (T4 metadata, T4 results), or (results, env) where ``output_T4`` is false.

    The command reads T1 files too: ``ergotune tune problem.json``.
    """
    inputs = json.loads(Path(input_filepath).read_text())
    kernel = inputs["KernelSpecification"]
    options = dict(strategy_options or {})
    if strategy is None and "Search" in inputs:
        strategy = inputs["Search"]["Name"]
        options.update({a["Name"]: a["Value"] for a in inputs["Search"].get("Attributes", [])})
    for budget in inputs.get("Budget", [])[:1]:
        names = {"ConfigurationCount": "max_fevals", "TuningDuration": "time_limit"}
        if budget["Type"] not in names:
            raise NotImplementedError(f"Budget type in {budget} is not supported")
        options[names[budget["Type"]]] = budget["BudgetValue"]
    if "custom_search_method_path" in options:
        strategy = _own_strategy(strategy, options)
    if cache_filepath is None:
        cache_filepath = kernel.get("SimulationInput")
    tune_params = {p["Name"]: _values(p) for p in inputs["ConfigurationSpace"]["TuningParameters"]}
    results, env = tune_kernel(
        kernel["KernelName"], _source(input_filepath, kernel["KernelFile"]), kernel["ProblemSize"],
        [_argument(a, tune_params, kernel["ProblemSize"]) for a in kernel["Arguments"]], tune_params,
        grid_div_x=kernel.get("GridDivX") or None, grid_div_y=kernel.get("GridDivY") or None,
        grid_div_z=kernel.get("GridDivZ") or None,
        restrictions=[c["Expression"] for c in inputs["ConfigurationSpace"].get("Conditions", [])],
        lang=kernel["Language"], device=device if isinstance(device, int) else 0, cache=cache_filepath,
        compiler_options=kernel.get("CompilerOptions"), simulation_mode=simulation_mode, quiet=True, iterations=iterations,
        strategy=strategy, strategy_options=options, objective=objective,
        objective_higher_is_better=objective_higher_is_better)
    if output_T4:
        return get_t4_metadata(), get_t4_results(results, tune_params, objective=objective)
    return results, env


def _own_strategy(name, options):
    """A strategy whose class stands in a file. Its own options go to its constructor, and out of ``options``."""
    optimizer = import_class_from_file(Path(options.pop("custom_search_method_path")), name)
    general = ("max_fevals", "time_limit", "constraint_aware")
    made = optimizer(**{key: options.pop(key) for key in list(options) if key not in general})
    options.setdefault("constraint_aware", getattr(made, "constraint_aware", False))
    return OptAlgWrapper(made)


def _source(input_filepath, name):
    folder = Path(input_filepath).parent
    for candidate in (Path(name), folder / name, folder.parent / name):
        if candidate.exists():
            return str(candidate)
    raise FileNotFoundError(f"KernelFile {name!r} is neither here nor beside {input_filepath}")


def _values(parameter):
    text = parameter["Values"]
    if not isinstance(text, str):
        return list(text)
    try:
        return list(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return list(eval(text, {"__builtins__": {"range": range, "list": list}}))  # T1 writes Python expressions


def _argument(argument, tune_params, problem_size):
    if argument["Type"] not in _TYPES:
        raise NotImplementedError(f"Conversion for type '{argument['Type']}' has not yet been implemented: {argument}")
    dtype = _TYPES[argument["Type"]]
    if argument["MemoryType"] == "Scalar":
        return dtype(argument["FillValue"])
    size = argument["Size"]
    if isinstance(size, str):
        size = int(evaluate(size, {**tune_params, "ProblemSize": problem_size}))
    if argument["FillType"] == "Constant":
        return np.full(size, argument["FillValue"], dtype)
    if argument["FillType"] == "Random":
        return np.random.default_rng(1).standard_normal(size).astype(dtype)
    raise NotImplementedError(f"Conversion for fill type '{argument['FillType']}' has not yet been implemented")
