"""What was chosen for a kernel, by device and key, in a file that processes share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional


def folder() -> Path:
    data = os.environ.get("ERGOTUNE_DATA_DIR")
    return Path(data or Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "ergotune") / "choices"


class Choices:
    """``depends_on``: each has a file of its own. None: nothing is kept."""

    def __init__(self, name: str, depends_on: Optional[str]) -> None:
        digest = hashlib.sha256((depends_on or "").encode()).hexdigest()[:16]
        self._file = None if depends_on is None else folder() / f"{name}-{digest}.json"

    def find(self, device: str, key: str) -> Optional[Dict[str, str]]:
        return next((row["configuration"] for row in self._rows() if (row["device"], row["key"]) == (device, key)), None)

    def add(self, row: Dict[str, Any]) -> None:
        if self._file:
            others = [other for other in self._rows() if (other["device"], other["key"]) != (row["device"], row["key"])]
            draft = self._file.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps([*others, row], indent=1))
            os.replace(draft, self._file)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Of several processes one tunes, and the others take what it has chosen."""
        with contextlib.ExitStack() as held:
            if self._file:
                try:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    fcntl.flock(held.enter_context(open(self._file.with_suffix(".lock"), "w")), fcntl.LOCK_EX)
                except OSError as error:
                    warnings.warn(f"what is chosen is not kept for other processes: {error}; name a folder in ERGOTUNE_DATA_DIR", stacklevel=2)
                    self._file = None
            yield

    def _rows(self) -> List[Dict[str, Any]]:
        if self._file:
            with contextlib.suppress(OSError, ValueError):
                rows = json.loads(self._file.read_text())
                return rows if isinstance(rows, list) else []
        return []
