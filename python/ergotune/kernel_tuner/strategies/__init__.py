"""Strategies: Kernel Tuner's by name, and what one's own are written with."""

from . import common, wrapper  # noqa: F401
