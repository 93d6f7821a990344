"""Strategies: Kernel Tuner's by name, and the base for your own."""

from . import common, wrapper  # noqa: F401
