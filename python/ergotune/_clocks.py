"""Clocks and power limits: ``ergotune clocks``."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Dict, Iterator, Optional

from . import _core


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
