"""Power, clocks and sensors of a device: ``ergotune model``, ``trace`` and ``calibrate``."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Union

from . import _command, _core
from ._session import ProblemOrFile, _loaded, _plain_settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import AllSettings

Path = Union[str, "os.PathLike[str]"]
#: function(line), called as the work goes on
Tell = Callable[[str], None]


def model(
    device: Optional[str] = None, *, from_file: Optional[Path] = None, clocks: int = 8, spaced: bool = False, share: float = 0.1,
    seed: int = 1, store: Optional[Path] = None, resume: bool = True, keep: bool = True, figure: Optional[Path] = None,
    sensors: Optional[Sequence[str]] = None, controls: Optional[Sequence[str]] = None, progress: Optional[Tell] = None,
) -> Dict[str, Any]:
    """Power over the core clock, its ridge point, and the clock that needs least energy (``ergotune model``).

    Args:
        device: where the full-load kernel runs: "cuda:0", "sim:a100" (default: the best).
        from_file: recorded samples instead: a Kernel Tuner cache with a clock and a power, a store, or CSV.
        clocks: how many clocks are sampled.
        spaced: all of them evenly, instead of where the model is least sure.
        share: half-width of the suggested range.
        seed: of a simulated device's noise.
        store: where live samples are kept, so that a sweep that was ended goes on (``resume``).
        keep: keep the fit of a real GPU, which ``core_clock_mhz = "model"`` uses.
        figure: an SVG file of power and energy over the clock.
        sensors, controls: as for the command.
        progress: function(line), called while it is measured.

    Returns:
        The document of ``ergotune model --json``: ridge_mhz, optimal_clock_mhz, suggested_range_mhz,
        valid_for, parameters, samples, ...

    Raises:
        UserError: for what the user can mend.
    """
    if from_file is not None and device is not None:
        raise TypeError("from_file takes recorded samples and device measures them: give one of them")
    if from_file is None and clocks < 3:
        raise _core.UserError("clocks must be at least 3 (5 to see a ridge)")
    settings = {"device": device, "clocks": clocks, "spaced": spaced, "seed": seed, "store": os.fspath(store) if store else None,
                "resume": resume, "keep": keep, "sensors": _list(sensors), "controls": _list(controls),
                "worker_command": None if from_file is not None else _command.worker()}
    return _core.model(os.fspath(from_file or ""), settings, share, os.fspath(figure or ""), progress)


def trace(
    problem: ProblemOrFile, configuration: Optional[Mapping[str, Any]] = None, *, before: float = 1, seconds: float = 3,
    after: float = 2, csv: Optional[Path] = None, figure: Optional[Path] = None, observers: Sequence[str] = (),
    progress: Optional[Tell] = None, **settings: Unpack[AllSettings],
) -> Dict[str, Any]:
    """Power, clocks and temperature over time, around and during the launches of one configuration (``ergotune trace``).

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        configuration: values by parameter; those left out take their defaults.
        before, seconds, after: s recorded before, during and after the launches.
        csv: keeps every value: time_s, series, value.
        figure: an SVG file of power and core clock over time.
        observers: names, as ``--observe`` takes them.
        progress: function(line), called while it is measured.
        settings: what a problem file may say under [tune] (device, sensors ...).

    Returns:
        The document of ``ergotune trace --json``: ``power`` and ``gpu`` with settling and drift of each series, ``reasons``.

    Raises:
        UserError: for what the user can mend. Error: where the configuration does not work.
    """
    plain = _plain_settings(settings, trace.__kwdefaults__)
    plain["worker_command"] = _command.worker()
    return _core.trace(_loaded(problem), plain, [observers] if isinstance(observers, str) else list(observers),
                       json.dumps(dict(configuration)) if configuration else "", before, seconds, after, os.fspath(csv or ""),
                       os.fspath(figure or ""), progress)


def calibrate(sensor: str, *, device: Optional[str] = None, meter: Optional[str] = None, keep: bool = True,
              progress: Optional[Tell] = None) -> Dict[str, Any]:
    """Update period, averaging window, lag and scale of a sensor, by a known load of 40 to 60 s (``ergotune calibrate``).

    Args:
        sensor: "nvml:0/energy" (``ergotune devices`` lists them).
        device: whose load it sees (default: by UUID or PCI address).
        meter: a better sensor, for gain and offset.
        keep: keep it for this device and driver; sensors use it from then on.
        progress: function(line), called before the load.

    Returns:
        The document of ``ergotune calibrate --json``.

    Raises:
        UserError: for what the user can mend. Error: where the sensor does not follow the load.
    """
    return _core.calibrate(sensor, device or "", meter or "", keep, progress)


def _list(given: Optional[Sequence[str]]) -> Optional[Sequence[str]]:
    return [given] if isinstance(given, str) else given
