"""ergotune: finds the configuration of a GPU kernel that needs least energy, least time, or the best of both.

Units are SI throughout: s, J, W, Hz. ``ergotune.kernel_tuner`` speaks Kernel Tuner's interface (and its ms).

    import ergotune
    result = ergotune.tune("examples/gemm/gemm.toml", budget=50)
    print(result.best, result.best_measurement["quantities"]["time"]["value"])
"""

from ._core import (  # noqa: F401
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
from ._results import Result  # noqa: F401
from ._session import compare_plans, devices, tune  # noqa: F401
from .observers import Observer  # noqa: F401

__version__ = "0.1.0"
