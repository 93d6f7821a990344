"""Analysis of a recording: speed and energy efficiency."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _core


def analyse(file: str | Path, *, session: int = 0, peaks: Sequence[str | Path] = (),
            figure: str | Path | None = None) -> dict[str, Any]:
    """The document of ``ergotune analyse --json`` (docs/counters.md) of a store, a Kernel Tuner cache, a T4 file or CSV: Pareto
    front, hull, ``influences`` (what correlates with speed, efficiency and their product, with intervals and p-values),
    ``occupancy_levels``, ``weighted``, ``roofline``, ``words``.

    ``session``: of a store, 0 for the latest. ``peaks``: recordings of kernels that reach the GPU's peaks, for the rooflines.
    ``figure``: an SVG file to write. Raises UserError for what its caller can mend.
    """
    document: dict[str, Any] = _core.analyse(os.fspath(file), session, [os.fspath(peak) for peak in peaks],
                                             os.fspath(figure or ""))
    return document
