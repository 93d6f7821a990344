"""Hardware counters, by ergotune's own observer of them."""

from .._meters import Meter


class NCUObserver(Meter):
    """Counters of an NVIDIA GPU, through CUPTI: launches of their own after time and energy, with inputs restored.

    Args:
        metrics: names as ``ncu --query-metrics`` tells them ("dram__bytes_read.sum"), or ergotune's own ("ipc"); the row has
            them under these names.
        device: the device is tune_kernel's.
    """

    energy = False

    def __init__(self, metrics=None, device=0):
        if isinstance(metrics, str) or not metrics:
            raise TypeError("NCUObserver needs a list of names of metrics, such as ['dram__bytes_read.sum']")
        self.metrics, self.device = list(metrics), device
        self.keys = {name: (name, 1.0) for name in self.metrics}

    def observe(self, problem):
        problem.observe("counters:" + ",".join(f"metrics={name}" for name in self.metrics))
