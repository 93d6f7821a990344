"""Rounds of a workload that an application runs anyway, tuned on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _command, _core
from ._core import Problem
from ._session import ProblemOrFile, Verify, _loaded, _plain_settings, _refuse_plan, _verifier
from ._watch import Watch, watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import AllSettings, Settings

Row = Dict[str, Any]


def measure(problem: ProblemOrFile, configuration: Optional[Mapping[str, Any]] = None, *, verify: Verify = None,
            **settings: Unpack[Settings]) -> Row:
    """One configuration, measured as a search measures it, or known from the ``store``; as ``ergotune measure`` does.

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        configuration: values by parameter; those left out take their defaults.
        verify: as for :func:`tune`; results of a ``store`` are those of the same function.
        settings: what a problem file may say under [tune] (device, objective, precision ...).

    Returns:
        Its measurement: a dict with ``status``, ``message``, ``quantities``, ``metrics``.
    """
    plain = _plain_settings(settings, ("configuration", "verify"))
    callback = _verifier(verify, plain)
    plain["worker_command"] = _command.worker()
    loaded = _loaded(problem, plain.get("device"))
    try:
        return _core.measure(loaded, plain, dict(configuration or {}), callback)
    except _core.UserError as error:
        if wrong := _unknown_value(loaded, plain.get("device") or "", configuration or {}):
            raise _core.UserError(f"{error}: {wrong}") from None
        raise


def _unknown_value(problem: Problem, device: str, configuration: Mapping[str, Any]) -> str:
    """Names the parameter that does not have the value in `configuration`, and its values; "" if all values are known."""
    try:
        space = _core.SearchSpace(problem, device=device)
    except Exception:
        return ""
    for name in space.parameter_names:
        values = space.values(name)
        if name in configuration and configuration[name] not in values:
            return f"{name} has no value {configuration[name]!r}, it has {', '.join(map(repr, values[:20]))}" + " ..." * (len(values) > 20)
    return ""


def measure_apart(problem: ProblemOrFile, configuration: Optional[Mapping[str, Any]] = None, *,
                  attribute: Optional[str] = None, **settings: Unpack[AllSettings]) -> Row:
    """A round of several kernels beside the same launches in sequence and each kernel alone, as ``measure --apart`` does.

    Args:
        problem: a :class:`Problem` of several kernels, or the path of a problem file.
        configuration: values by parameter; those left out take their defaults.
        attribute: "marginal" (the round less the round without a kernel) or "shapley" (what a kernel adds, over all orders; up to
            four kernels): how much of time and energy each kernel owes. That is a model, and marked as modelled.
        settings: what a problem file may say under [tune] (device, objective, precision ...).

    Returns:
        dict: ``{"rounds": [measurement with "round", its name], "attribution": {"method", "provenance", "kernels": [{"name",
        "time", "energy"}]}}``; "attribution" only if ``attribute`` is given.
    """
    plain = _plain_settings(settings, ("attribute", "configuration"))
    plain["worker_command"] = _command.worker()
    return _core.measure_apart(_loaded(problem, plain.get("device")), plain, dict(configuration or {}), attribute)


class Session(_core.Session):
    """An application's loop asks for its rounds one by one; trials of other configurations come between them.

    >>> session = ergotune.Session("four.toml", store="four.db")   # doctest: +SKIP
    >>> for step in range(2000):                                   # doctest: +SKIP
    ...     session.next_round()

    Rounds begin with the default configuration and go over to the best that was found; each runs with one whose outputs are
    right. Trials run in worker processes on data of their own. What they cost stays below ``bound``, a share of what the rounds so
    far would have taken with the default configuration; what faster ones save may be spent too. With a ``store`` the next process
    goes on where this one ended.

    Args:
        problem: a :class:`Problem`, or the path of a problem file.
        bound: 0.05 is 5 %.
        own_rounds: trials are the loop's own rounds in this process: five with each configuration, for an objective of energy those
            of about two seconds. Code is compiled beside the rounds, so that a trial costs what a worse configuration takes more;
            ``bound`` is a share of the energy where that is the objective. Clocks and limits of the problem are set with each
            configuration, and put back with the end of the session. Outputs are not compared: for configurations that are known
            to be right.
        settings: what a problem file may say under [tune] (budget, strategy, store, device ...).
    """

    def __init__(self, problem: ProblemOrFile, *, bound: float = 0.05, own_rounds: bool = False, **settings: Unpack[AllSettings]) -> None:
        _refuse_plan(settings)
        plain = _plain_settings(settings, ("bound", "own_rounds"))
        plain["worker_command"] = _command.worker()
        super().__init__(_loaded(problem, plain.get("device")), plain, bound, own_rounds)
        self._store: str = plain.get("store") or ""

    def read(self, buffer: str, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """An argument's contents as the last round left them, in one dimension, as they lie in memory."""
        return np.frombuffer(self.read_bytes(buffer), dtype=dtype).copy()

    def write(self, buffer: str, contents: ArrayLike) -> None:
        """New contents of an argument, for the next round; an array of its type, size and order in memory."""
        self.write_bytes(buffer, _core.in_memory_order(np.asarray(contents)).tobytes())

    def watch(self, *, page: Optional[bool] = None, height: int = 760) -> Watch:
        """The page on this session (:func:`ergotune.watch`), which needs a ``store=``."""
        if not self._store:
            raise _core.UserError("this session keeps nothing that a page could show: give it store=\"results.db\"")
        return watch(self._store, page=page, height=height, wait=True)
