"""Verbs of the command that measure nothing, as functions that return the documents of ``--json``; clocks and power limits."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import sys
from typing import Any, Dict, Iterator, Optional, Sequence, Union

from . import _command, _core
from ._callables.tune import kept
from ._results import Result
from ._session import ProblemOrFile, _loaded

Path = Union[str, "os.PathLike[str]"]


def show(source: Path = "ergotune.db", *, session: int = 0, objective: Optional[str] = None, top: int = 10) -> Result:
    """A stored session as :func:`tune` returned it: the best configurations, every measurement, failures (``ergotune show``).

    Args:
        source: a store, a Kernel Tuner cache, T4 or CSV file.
        session: of the store (default: the one worked on last).
        objective: rank by this instead of what was tuned for.
        top: how many of the best are listed.

    Returns:
        A :class:`Result`; objects that were values of a function's parameters are there by their names: the same
        :func:`tune_callable` with this store measures nothing and returns them. Its ``document``, the document of
        ``ergotune show --json`` (``ergotune.schema("result")``), is read by ``result["best"]``, too, and lists the ``sessions`` of the
        store.
    """
    return Result(_core.show(os.fspath(source), session, objective, top))


def _written(configuration: Dict[str, Any]) -> str:
    """As JSON; objects that were values of a function's parameters by the names that they are kept by."""
    return json.dumps({name: kept(value) for name, value in configuration.items()}, default=lambda scalar: scalar.item())


def predict(store: Path = "ergotune.db", *, session: int = 0, configurations: Sequence[Dict[str, Any]] = (), by: str = "",
            top: int = 5) -> Dict[str, Any]:
    """Predicts time and energy of configurations that were not measured (``ergotune predict``): modelled values.

    Args:
        store: a results database.
        session: of the store (default: the one worked on last).
        configurations: predict these; parameters left out take their defaults. Without: those with the best predicted value, without
            values of parameters that never worked (``importance["ruled_out"]``).
        by: "time" or "energy": the quantity of the least values (default: the objective of the session, a metric, too).
        top: how many of them.

    Returns:
        The document of ``ergotune predict --json``.

    Raises:
        UserError: too few configurations worked to model them, a configuration is not in the space, or functions restrict a space of more than
            10000 configurations, which is not stored.
    """
    return _core.predict(os.fspath(store), session, [_written(one) for one in configurations], by, top)


def compare(*sources: Path, objective: Optional[str] = None) -> Dict[str, Any]:
    """Compares sessions: best, ranking, and what the best of one loses in the other (``ergotune compare``).

    Args:
        sources: two or more: a store (its latest session), "results.db:2" (session 2), or any recording.
        objective: compare by this instead of what was tuned for; needed where that differs.

    Returns:
        The document of ``ergotune compare --json``.

    Raises:
        UserError: the sessions were tuned for different objectives, and ``objective`` is not given.
    """
    if len(sources) < 2:
        raise _core.UserError("compare takes two sessions or more: ergotune.compare(\"before.db\", \"after.db\"), or \"results.db:1\" and "
                              "\"results.db:2\" of one store")
    return _core.compare([os.fspath(source) for source in sources], objective)


def export_results(source: Path, output: Path, *, format: str, session: int = 0, objective: Optional[str] = None) -> Dict[str, Any]:
    """Writes stored results in the formats of other tools (``ergotune export``).

    Args:
        source: a store, a Kernel Tuner cache, T4 or CSV file.
        output: the file to write; of wisdom the folder.
        format: "kt" (Kernel Tuner cache), "t4", "csv", "wisdom" (a file per kernel) or "header" (the best per device as #defines of C).
        session: of the store (default: the one worked on last; wisdom and header: all).
        objective: choose the best by this instead of what was tuned for.

    Returns:
        The document of ``ergotune export --json``.
    """
    return _core.export_results(os.fspath(source), os.fspath(output), format, session, objective)


def import_results(file: Path, store: Path, *, name: str = "", device: str = "") -> Dict[str, Any]:
    """Brings results of other tools into a store, which is made where there is none (``ergotune import``).

    Args:
        file: a Kernel Tuner cache (gzip or not), T4 results, or CSV.
        store: the store to add them to.
        name, device: names of the problem and the device (default: those in the file).

    Returns:
        The document of ``ergotune import --json``.
    """
    return _core.import_results(os.fspath(file), os.fspath(store), name, device)


def doctor() -> Dict[str, Any]:
    """What works on this machine, and the remedy where something does not (``ergotune doctor``); changes no setting.

    Returns:
        The document of ``ergotune doctor --json``: ``can_tune``, and ``findings`` with area, subject, state, message, remedy.
    """
    return _core.doctor(_command.existing())


def analyse(file: Path, *, device: str = "", session: int = 0, peaks: Sequence[Path] = (), figure: Optional[Path] = None) -> Dict[str, Any]:
    """Speed and energy efficiency of a recording, and how hard it is to search (``ergotune analyse``).

    Args:
        file: a store, a Kernel Tuner cache, a T4 file or CSV; with ``device`` a problem file.
        device: a simulated one ("sim:a100"), on which every configuration of the problem is analysed.
        session: of a store (default: the one worked on last).
        peaks: recordings of kernels that reach the GPU's peaks, for the rooflines.
        figure: an SVG file to write.

    Returns:
        The document of ``ergotune analyse --json``: Pareto front, hull, ``influences`` (what correlates with speed, efficiency and
        their product, with intervals and p-values), ``occupancy_levels``, ``weighted``, ``roofline``, ``findings``.
    """
    return _core.analyse(os.fspath(file), session, [os.fspath(peak) for peak in peaks], os.fspath(figure or ""), device)


def compile_check(problem: ProblemOrFile, device: str = "", *, count: int = 10, seed: int = 1) -> Dict[str, Any]:
    """Compiles configurations without running them (``ergotune space --compile``): the default one and random others.

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        device: "sim:h100": for an NVIDIA GPU that needs not be here (CUDA C++, with NVRTC); else a device of this machine.
        count: how many configurations; all with that of the space, ``len(SearchSpace(problem))``.
        seed: of the random choice.

    Returns:
        ``device``, ``valid`` (configurations of the space) and ``compiled``: of each its ``configuration``, whether it ``compiles``, whether the
        device has the threads and the dynamic shared memory that its blocks need (``fits``), and the compiler's ``message``; ``notes`` about the sources.
    """
    return _core.compile_check(_loaded(problem), device, count, seed)


def draft_problem(source: Path, output: Optional[Path] = None, *, kernel: str = "",
                  host: Optional[Path] = None, include_folders: Sequence[Path] = (), force: bool = False) -> Dict[str, Any]:
    """Writes a first problem file for a kernel, from its source (``ergotune init``).

    Args:
        source: of the kernel: .cu, .hip, .cl, .c or .cpp.
        output: the problem file (default: the source's name with .toml).
        kernel: which one, where the source has several.
        host: the program that launches it (C, C++ or Python), for sizes, block and grid.
        include_folders: with headers of the source, besides its own folder.
        force: replaces the problem file where it exists.

    Returns:
        The document of ``ergotune init --json``: ``problem``, the file; ``kernel``; ``questions``, what had to be guessed.
    """
    file = pathlib.Path(output) if output is not None else pathlib.Path(source).with_suffix(".toml")
    if file.exists() and not force:
        raise _core.UserError(f"{file} exists: force=True replaces it, output= names another")
    text, function, questions = _core.draft_problem(source, kernel, file.parent, host or "", list(include_folders))
    _core.parse_problem(text, file)  # what is written can be read
    file.write_text(text)
    return {"problem": str(file), "kernel": function, "questions": questions}


def schema(document: str = "problem") -> Dict[str, Any]:
    """The JSON Schema of a document (``ergotune schema``): "problem", a problem file; "result", what ``--json`` and ``Result.document``
    hold."""
    if document not in ("problem", "result"):
        raise _core.UserError(f"no document {document!r} has a schema: \"problem\" and \"result\" have one")
    return _core.schema(document)


@contextlib.contextmanager
def clocks(*, core_clock_mhz: Optional[float] = None, memory_clock_mhz: Optional[float] = None, power_limit_w: Optional[float] = None,
           control: Optional[str] = None, take_over: bool = False) -> Iterator[None]:
    """Runs a block at a clock or power limit (``ergotune clocks set``).

    >>> with ergotune.clocks(core_clock_mhz=1395, control="nvml:0"):   # doctest: +SKIP
    ...     train()

    The setting is in force for every program on the device, and is restored when the block ends, also when the process is killed.
    It needs root, or a policy of ergotuned that permits the value.

    Args:
        core_clock_mhz, memory_clock_mhz, power_limit_w: what is set.
        control: through what, as ``ergotune clocks status`` lists them (default: the only one there is).
        take_over: sets clocks although another process seems to have locked them.

    Raises:
        UserError: for a value that the device does not take, and for a device that another session holds. Error: where a setting
            cannot be restored.
    """
    given = {"core_clock_mhz": core_clock_mhz, "memory_clock_mhz": memory_clock_mhz, "power_limit_w": power_limit_w}
    values = {name: float(value) for name, value in given.items() if value is not None}
    if not values:
        raise TypeError("nothing is to be set: give core_clock_mhz=, memory_clock_mhz= or power_limit_w=")
    held = _core.HeldSetting(control, values, take_over)
    try:
        for note in held.notes:
            print(f"ergotune: {note}", file=sys.stderr)
        yield
    finally:
        held.close()


def clock_status(control: Optional[str] = None) -> Dict[str, Any]:
    """Clocks and limits that can be set here, what is set, and by which session (``ergotune clocks status``).

    Args:
        control: only this one ("nvml:0", "tegra", "amdgpu:card0", "cpufreq").

    Returns:
        The document of ``ergotune clocks status --json``.
    """
    return _core.clock_status(control or "")


def restore_clocks() -> Dict[str, Any]:
    """Restores what sessions that died have left, from their journals (``ergotune clocks restore``).

    Returns:
        The document of ``ergotune clocks restore --json``; ``complete`` is false where something could not be restored.
    """
    return _core.restore_clocks()
