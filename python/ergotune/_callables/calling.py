"""How functions of parameters are called: by name, or with a dict of them all."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _arguments(function: Callable[..., Any]) -> Optional[List[inspect.Parameter]]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of a compiled function
        return None


def wanted_names(function: Callable[..., Any], names: Sequence[str], what: str) -> Optional[List[str]]:
    """Those of the names that a function takes by keyword; None where it takes a dict of them all, as its only required argument.

    Other arguments keep their defaults; ``**`` takes all. Raises TypeError for a function that can be called in neither way."""
    arguments = _arguments(function)
    if arguments is None:
        return None
    by_keyword = [one.name for one in arguments if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and one.name in names]
    missing = [one for one in arguments if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
               and one.name not in by_keyword]
    takes_all = any(one.kind is one.VAR_KEYWORD for one in arguments)
    if not missing and (by_keyword or takes_all):
        return list(names) if takes_all else by_keyword
    if not by_keyword and len(missing) <= 1 and only_argument(function):
        return None
    if not missing:
        raise TypeError(f"{what} takes no argument: name the parameters that it depends on; there are {', '.join(names) or 'none before it'}")
    near = difflib.get_close_matches(missing[0].name, names, 1)
    raise TypeError(f"{what} takes {missing[0].name!r}, which is not a parameter and has no default"
                    + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names) or 'none before it'}"))


def only_argument(function: Callable[..., Any]) -> str:
    """The name of the argument that takes a dict; empty where there is none."""
    arguments = _arguments(function)
    if arguments is None:
        return ""
    return next((one.name for one in arguments if one.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL)), "")


@functools.lru_cache(maxsize=256)
def _metric_names(function: Callable[..., Any], names: Sequence[str]) -> Optional[List[str]]:
    return wanted_names(function, names, "the metric")


def with_row(function: Callable[..., Any], row: Mapping[str, Any]) -> Any:
    """What a metric's function returns: of a row's values by name, or of the row."""
    wanted = _metric_names(function, tuple(row))
    return function(dict(row)) if wanted is None else function(**{name: row[name] for name in wanted})
