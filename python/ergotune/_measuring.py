"""Verbs of the command that measure, as functions that return the documents of ``--json``."""

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
    _require("temperature")
    settings = {"device": device, "sensors": [sensor] if sensor else None, "controls": [control] if control else None,
                "worker_command": _command.worker()}
    return _core.temperature(_loaded(problem), settings, json.dumps(dict(configuration or {})), runs, seconds or 0, rest, every, at,
                             os.fspath(csv or ""), os.fspath(figure or ""), keep)


def program(
    command: Sequence[Path], *, max_slowdown: float = 0.05, settings: int = 12, control: Optional[str] = None,
    sensors: Optional[Sequence[str]] = None, precision: Optional[float] = None, max_seconds: Optional[float] = None,
    time_limit: float = 3600, store: Optional[Path] = None, resume: bool = True, wisdom: Optional[Path] = None, take_over: bool = False,
    progress: Optional[Tell] = None,
) -> Dict[str, Any]:
    """The clock or power limit at which any program needs least energy (``ergotune program``).

    The program runs several times; what it writes it writes each time. Settings are restored however it ends. Without a clock or
    limit that can be set, time and energy of the program as it is are measured.

    Args:
        command: the program and its arguments: ["./simulate", "input.nml"].
        max_slowdown: share that it may take longer: 0.05 is 5 %.
        settings: how many are tried at most, before the best are confirmed.
        control, sensors: through which clocks are set, and whose energy counts (default: the only ones there are).
        precision: target half-width of the 95 % interval of time and energy.
        max_seconds: how long the runs at one setting take at most, where three runs do.
        time_limit: s that one run may take.
        store: where results are kept, and found again (``resume``).
        wisdom: folder to whose wisdom the setting is added; needs ``store``.
        take_over: sets clocks although another process seems to have locked them.
        progress: function(line), called with notes.

    Returns:
        The document of ``ergotune program --json``: ``best`` with ``setting`` and quantities, ``unchanged``, ``energy_ratio``,
        ``time_ratio``, ``tried``, ``run_with``; ``measured`` and ``why_not`` where nothing could be set.

    Raises:
        UserError: for what the user can mend.
    """
    _require("program")
    if isinstance(command, str) or not command:
        raise TypeError(f"command is a list of the program and its arguments, not {command!r}")
    if not 0 <= max_slowdown < 1:
        raise _core.UserError(f"max_slowdown is a share such as 0.05, not {max_slowdown}")
    given = {"max_slowdown": max_slowdown, "settings": settings, "control": control, "sensors": _list(sensors), "precision": precision,
             "max_seconds": max_seconds, "time_limit": time_limit, "store": os.fspath(store) if store else None, "resume": resume,
             "wisdom": os.fspath(wisdom) if wisdom else None, "take_over": take_over, "worker_command": _command.worker()}
    return _core.program([os.fspath(word) for word in command], given, progress)


def _list(given: Optional[Sequence[str]]) -> Optional[Sequence[str]]:
    return [given] if isinstance(given, str) else given


def _require(extension: str) -> None:
    if not hasattr(_core, extension):
        raise _core.UserError(f"this build is without the extension {extension} (ERGOTUNE_EXTENSION_{extension.upper()})")
