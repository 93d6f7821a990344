"""Python callables as kernels."""

from .tune import tune_callable

__all__ = ["tune_callable"]
