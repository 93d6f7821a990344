"""What Kernel Tuner has and ergotune does not: each name raises, with the alternative."""

from typing import Any, Callable, Dict


class NotSupported(NotImplementedError):
    """A name or an argument of Kernel Tuner's that ergotune does not take; the message names the alternative."""


def absent(module: str, names: Dict[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: ``names`` maps each name that is not supported to what to do instead."""

    def look_up(name: str) -> Any:
        if name in names:
            raise NotSupported(f"{module}.{name} is not supported by ergotune: {names[name]}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look_up
