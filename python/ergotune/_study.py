"""Studies of one configuration."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, Optional, Union

from . import _command, _core
from ._session import ProblemOrFile, _loaded

Path = Union[str, "os.PathLike[str]"]


def temperature(
    problem: ProblemOrFile, configuration: Optional[Mapping[str, Any]] = None, *, runs: int = 300, seconds: Optional[float] = None,
    rest: float = 0, every: int = 20, at: Optional[float] = None, csv: Optional[Path] = None, figure: Optional[Path] = None,
    keep: bool = True, device: Optional[str] = None, sensor: Optional[str] = None, control: Optional[str] = None,
) -> Dict[str, Any]:
    """Measures one configuration again and again, over the temperature of the chip (``ergotune temperature``).

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        configuration: values by parameter; those left out take their defaults.
        runs: how often it is measured.
        seconds: end after so many s, however often it was measured by then.
        rest: s in which the GPU cools, after every ``every`` runs.
        at: correct energies to this temperature in °C (modelled).
        csv, figure: files for every run, and for energy over temperature as SVG.
        keep: keep the GPU's change of power with temperature, for the objective "corrected_energy".
        device, sensor, control: as for the command.

    Returns:
        A dict: runs, coolest_c, hottest_c (°C); ``over_temperature`` with mean, slope_per_degree, low, high (95 %) and
        percent_per_degree of energy (J), power (W), time (s) and core_clock (Hz); ``coefficient`` (W per °C, or None with
        why_not); ``corrected`` where ``at`` is given.

    Raises:
        UserError: for what the user can mend. Error: when there is no answer.
    """
    if not hasattr(_core, "temperature"):
        raise _core.UserError("this build is without the extension temperature (ERGOTUNE_EXTENSION_TEMPERATURE)")
    settings = {"device": device, "sensors": [sensor] if sensor else None, "controls": [control] if control else None,
                "worker_command": _command.worker()}
    document: Dict[str, Any] = _core.temperature(
        _loaded(problem), settings, json.dumps(dict(configuration or {})), runs, seconds or 0, rest, every, at,
        os.fspath(csv or ""), os.fspath(figure or ""), keep)
    return document
