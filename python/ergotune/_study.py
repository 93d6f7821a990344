"""Studies of one configuration that the command makes."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Union

from . import _command, _core

Path = Union[str, "os.PathLike[str]"]


def temperature(
    problem: Path, configuration: Optional[Mapping[str, Any]] = None, *, runs: int = 300, seconds: Optional[float] = None,
    rest: float = 0, every: int = 20, at: Optional[float] = None, csv: Optional[Path] = None, figure: Optional[Path] = None,
    keep: bool = True, device: Optional[str] = None, sensor: Optional[str] = None, control: Optional[str] = None,
) -> Dict[str, Any]:
    """Measures one configuration again and again, over the temperature of the chip (``ergotune temperature``).

    Args:
        problem: path of a problem file.
        configuration: values by parameter; those left out take their defaults.
        runs: how often it is measured.
        seconds: end after so many s, however often it was measured by then.
        rest: s in which the board cools, after every ``every`` runs.
        at: correct energies to this temperature in °C (modelled).
        csv, figure: files for every run, and for energy over temperature as SVG.
        keep: keep the board's change of power with temperature, for the objective "corrected_energy".
        device, sensor, control: as for the command.

    Returns:
        A dict: runs, coolest_c, hottest_c (°C); ``over_temperature`` with mean, slope_per_degree, low, high (95 %) and
        percent_per_degree of energy (J), power (W), time (s) and core_clock (Hz); ``coefficient`` (W per °C, or None with
        why_not); ``corrected`` where ``at`` is given.

    Raises:
        UserError: for what the user can mend. Error: when there is no answer.
    """
    words: List[str] = [_command.existing(), "temperature", os.fspath(problem), "--json", "--runs", str(runs),
                        "--rest", str(rest), "--every", str(every), "--config", json.dumps(dict(configuration or {}))]
    for name, value in (("seconds", seconds), ("at", at), ("csv", csv), ("figure", figure), ("device", device),
                        ("sensor", sensor), ("control", control)):
        if value is not None:
            words += [f"--{name}", str(value)]
    if not keep:
        words.append("--dry-run")
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        said = done.stderr.strip().rpartition("ergotune: ")[2]
        raise (_core.UserError if done.returncode == 2 else _core.Error)(said)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found
