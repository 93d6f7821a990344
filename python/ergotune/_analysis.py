"""What a recording says of speed and efficiency."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _command
from ._core import Error, UserError


def analyse(file: str | Path, *, session: int = 0, peaks: Sequence[str | Path] = (), figures: str | Path | None = None,
            metrics: Sequence[str] = ()) -> dict[str, Any]:
    """The document of ``ergotune analyse --json`` (docs/counters.md) of a store, a Kernel Tuner cache, a T4 file or CSV: Pareto
    front, hull, ``influences`` (what correlates with speed, efficiency and their product, with intervals and p-values),
    ``occupancy_levels``, ``weighted``, ``roofline``, ``words``.

    ``session``: of a store, 0 for the latest. ``peaks``: recordings of kernels that reach the board's peaks, for the rooflines.
    ``figures``: a folder for SVG figures, with Figure 9 of ``metrics``. Raises UserError for what its caller can mend.
    """
    words = [_command.existing(), "analyse", str(file), "--json"]
    if session:
        words += ["--session", str(session)]
    for peak in peaks:
        words += ["--peaks", str(peak)]
    if figures is not None:
        words += ["--figures", str(figures)]
    for metric in metrics:
        words += ["--metric", metric]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        message = done.stderr.strip().removeprefix("ergotune: ")
        raise (UserError if done.returncode == 2 else Error)(message)
    document: dict[str, Any] = json.loads(done.stdout)
    return document
