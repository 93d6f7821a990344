"""The ``ergotune`` command that the package carries."""

import os
import sys
from pathlib import Path


def path() -> Path:
    """Path of the native command inside the package (or ERGOTUNE_COMMAND)."""
    named = os.environ.get("ERGOTUNE_COMMAND")
    return Path(named) if named else Path(__file__).parent / "bin" / "ergotune"


def main() -> None:
    """Becomes the native command."""
    program = path()
    if not program.exists():
        sys.exit(f"ergotune: the native command is missing at {program}; reinstall the package")
    os.execv(program, [str(program), *sys.argv[1:]])
