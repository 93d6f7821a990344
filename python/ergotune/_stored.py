"""Stored results and this machine: ``ergotune show``, ``compare``, ``predict``, ``export``, ``import`` and ``doctor``."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Sequence, Union

from . import _command, _core

Path = Union[str, "os.PathLike[str]"]


def show(source: Path = "ergotune.db", *, session: int = 0, objective: Optional[str] = None, top: int = 10) -> Dict[str, Any]:
    """The best configurations, the failures and the sessions of stored results (``ergotune show``).

    Args:
        source: a store, a Kernel Tuner cache, T4 or CSV file.
        session: of the store (default: the one worked on last).
        objective: rank by this instead of what was tuned for.
        top: how many of the best are listed.

    Returns:
        The document of ``ergotune show --json`` (``ergotune.schema("result")``).
    """
    return _core.show(os.fspath(source), session, objective, top)


def predict(store: Path = "ergotune.db", *, session: int = 0, configurations: Sequence[Dict[str, Any]] = (), by: str = "",
            top: int = 5) -> Dict[str, Any]:
    """Predicts time and energy of configurations that were not measured (``ergotune predict``): modelled values.

    Args:
        store: a results database.
        session: of the store (default: the one worked on last).
        configurations: predict these; parameters left out take their defaults. Without: those with the least predicted value.
        by: "time" or "energy": the quantity of the least values.
        top: how many of them.

    Returns:
        The document of ``ergotune predict --json``.

    Raises:
        UserError: too few configurations worked to model them, or a configuration is not in the space.
    """
    return _core.predict(os.fspath(store), session, [json.dumps(one) for one in configurations], by, top)


def compare(*sources: Path, objective: Optional[str] = None) -> Dict[str, Any]:
    """Compares sessions: best, ranking, and what the best of one loses in the other (``ergotune compare``).

    Args:
        sources: two or more: a store (its latest session), "results.db:2" (session 2), or any recording.
        objective: compare by this instead of what was tuned for.

    Returns:
        The document of ``ergotune compare --json``.
    """
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
