"""Hooks on the measurement of a configuration, called in the tuner's own process."""

from typing import Any, Dict


class Observer:
    """Base of user observers. Override what you need.

    With ``phase = "launches"`` the hooks see single launches, exactly one between before_start and after_finish, after the
    time was measured. Else they run in this order for every repetition of the timed launches; ``during`` is called again and again from a
    thread of its own while they run. ``get_results`` is called once per configuration and gives quantities by name (SI
    units); a list of readings becomes a mean with its standard error.
    """

    def register_configuration(self, configuration: Dict[str, Any]) -> None:
        """Once per configuration, before anything else. ``configuration`` is a dict."""

    def before_start(self) -> None:
        """Before the launches of a repetition are queued."""

    def after_start(self) -> None:
        """After they were queued."""

    def during(self) -> None:
        """While they run."""

    def after_finish(self) -> None:
        """After the last of them has finished."""

    def get_results(self) -> Dict[str, Any]:
        """Quantities by name."""
        return {}
