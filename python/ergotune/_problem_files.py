"""Problem files: ``ergotune init`` and ``ergotune schema``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Optional, Union

from . import _core


def draft_problem(source: Union[str, "os.PathLike[str]"], output: Union[str, "os.PathLike[str]", None] = None, *, kernel: str = "",
                  force: bool = False) -> Dict[str, Any]:
    """Writes a first problem file for a kernel, from its source (``ergotune init``).

    Args:
        source: of the kernel: .cu, .hip, .cl, .c or .cpp.
        output: the problem file (default: the source's name with .toml).
        kernel: which one, where the source has several.
        force: replaces the problem file where it exists.

    Returns:
        The document of ``ergotune init --json``: ``problem``, the file; ``kernel``; ``questions``, what had to be guessed.
    """
    file = Path(output) if output is not None else Path(source).with_suffix(".toml")
    if file.exists() and not force:
        raise _core.UserError(f"{file} exists: force=True replaces it, output= names another")
    text, function, questions = _core.draft_problem(source, kernel, file.parent)
    _core.parse_problem(text, file)  # what is written can be read
    file.write_text(text)
    return {"problem": str(file), "kernel": function, "questions": questions}


def schema(document: str = "problem") -> Dict[str, Any]:
    """The JSON Schema of a document (``ergotune schema``): "problem", a problem file; "result", what ``--json`` and ``Result.document``
    hold."""
    if document not in ("problem", "result"):
        raise _core.UserError(f"no document {document!r} has a schema: \"problem\" and \"result\" have one")
    return _core.schema(document)
