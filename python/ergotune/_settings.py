"""The settings of a run as type checkers read them; ``help(ergotune.tune)`` describes each. A test compares the names."""

from __future__ import annotations

import os
from typing import List, Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]


class Settings(TypedDict, total=False):
    """Keywords of :func:`ergotune.tune`."""

    device: str
    objective: str
    strategy: str
    budget: Union[int, str]
    seed: int
    jobs: int
    store: Path
    sensors: Union[str, Sequence[str]]
    controls: Union[str, Sequence[str]]
    strategy_options: Mapping[str, Union[bool, int, float, str]]
    precision: float
    time_limit: float
    compile_time_limit: float
    max_seconds: float
    energy_budget: float
    reference: float
    warm_up: int
    min_repeats: int
    max_repeats: int
    cold_cache: bool
    cache: bool
    cache_dir: Path
    quiet_node: bool
    node_commands: Union[str, Sequence[str]]
    nodes: Path
    node_silence: float
    reference_every: float
    confirm: bool
    early_stop: bool
    occupancy: float
    prior: Union[str, List[str]]


class AllSettings(Settings, total=False):
    """Where ``verify`` and ``plan`` have no keyword of their own."""

    verify: bool
    plan: str
