"""ergotune: finds the configuration of a GPU kernel that needs least energy, least time, or the best of both.

Units are SI throughout: s, J, W, Hz. ``ergotune.kernel_tuner`` speaks Kernel Tuner's interface (and its ms).

    import ergotune
    result = ergotune.tune("examples/gemm/gemm.toml", budget=50)
    print(result.best, result.best_measurement["quantities"]["time"]["value"])
"""

from ._core import (
    Error,
    Problem,
    Recording,
    SearchSpace,
    Strategy,
    UserError,
    load_problem,
    load_recording,
    parse_problem,
    quantities,
    register_strategy,
    strategies,
    write_report,
)
from ._callables import tune_callable
from ._energy import EnergyCallback, EnergyMonitor, RegionEnergy, energy
from ._results import Result
from ._online import Session, measure, measure_apart
from ._measuring import calibrate, model, program, temperature, trace
from ._session import compare_plans, devices, tune, tune_sizes
from ._documents import (
    analyse,
    clock_status,
    clocks,
    compare,
    compile_check,
    doctor,
    draft_problem,
    export_results,
    import_results,
    predict,
    restore_clocks,
    schema,
    show,
)
from ._watch import Watch, watch
from .observers import Observer

__all__ = [
    "EnergyCallback", "EnergyMonitor", "Error", "Observer", "Problem", "Recording", "RegionEnergy", "Result", "SearchSpace",
    "Session", "Strategy", "UserError", "Watch", "analyse", "calibrate", "clock_status", "clocks", "compare", "compare_plans",
    "compile_check", "devices", "doctor", "draft_problem", "energy", "export_results", "import_results", "load_problem", "load_recording", "measure",
    "measure_apart", "model", "parse_problem", "predict", "program", "quantities", "register_strategy", "restore_clocks", "schema", "show", "strategies",
    "temperature", "trace", "tune", "tune_callable", "tune_sizes", "watch", "write_report",
]

__version__ = "0.1.0"
