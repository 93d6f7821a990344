"""Registers per thread."""

from .observer import BenchmarkObserver


class RegisterObserver(BenchmarkObserver):
    """``num_regs`` of each configuration, on CUDA devices."""

    def get_results(self):
        try:
            return {"num_regs": self.dev.num_regs}
        except AttributeError:
            raise NotImplementedError(
                f"Backend '{type(self.dev).__name__}' does not support count of registers per thread") from None
