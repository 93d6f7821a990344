"""Hardware counters, by ergotune's own observer ``counters``."""

from typing import Optional, Sequence

from .._observers import Meter


class NCUObserver(Meter):
    """The metrics named, under their names: any of the chip's, as ``ncu --query-metrics`` lists them, or counters by the names of
    papers (docs/counters.md). Counted in launches of their own after the time, with inputs restored; no nvmetrics is needed. Device and
    rights: docs/counters.md."""

    energy = False

    def __init__(self, metrics: Optional[Sequence[str]] = None, device: int = 0) -> None:
        if isinstance(metrics, str) or not metrics:
            raise ValueError("NCUObserver needs the metrics to observe, a list of names such as ['dram__bytes_read.sum']")
        self.metrics, self.device = list(metrics), device
        self.keys = {name: (name, 1.0) for name in self.metrics}
        self.observe = "counters:" + ",".join(f"metrics={name}" for name in self.metrics)
