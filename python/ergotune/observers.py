"""Hooks on the measurement of a configuration, called in the tuner's own process."""


class Observer:
    """Base of user observers. Override what you need.

    The hooks run in this order for every repetition of the timed launches; ``during`` is called again and again from a
    thread of its own while they run. ``get_results`` is called once per configuration and gives quantities by name (SI
    units); a list of readings becomes a mean with its standard error.
    """

    def register_configuration(self, configuration):
        """Once per configuration, before anything else. ``configuration`` is a dict."""

    def before_start(self):
        """Before the launches of a repetition are queued."""

    def after_start(self):
        """After they were queued."""

    def during(self):
        """While they run."""

    def after_finish(self):
        """After the last of them has finished."""

    def get_results(self):
        """Quantities by name."""
        return {}
