"""Helpers: code between directives."""

from . import directives  # noqa: F401
