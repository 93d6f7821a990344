"""The ``ergotune`` command that the package carries."""

import contextvars
import os
import shutil
import sys
from pathlib import Path
from typing import List, Optional

from ._core import UserError

#: How workers are started instead, while it is set.
worker_in_place: contextvars.ContextVar[Optional[List[str]]] = contextvars.ContextVar("worker_in_place", default=None)


def path() -> Path:
    """Path of the native command inside the package (or ERGOTUNE_COMMAND)."""
    named = os.environ.get("ERGOTUNE_COMMAND")
    return Path(shutil.which(named) or named) if named else Path(__file__).parent / "bin" / "ergotune"


def existing() -> str:
    """The same, of a file that is there. Raises UserError."""
    program = path()
    if not program.exists():
        raise UserError(f"the ergotune command is missing at {program}: install the package again, or name the command in the "
                        "environment variable ERGOTUNE_COMMAND")
    return str(program)


def worker() -> List[str]:
    """How a worker process is started. Raises UserError."""
    return worker_in_place.get() or [existing(), "worker"]


def main() -> None:
    """Becomes the native command."""
    try:
        program = existing()
    except UserError as missing:
        sys.exit(f"ergotune: {missing}")
    os.execv(program, [program, *sys.argv[1:]])
