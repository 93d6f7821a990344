"""Restrictions as Kernel Tuner takes them: strings, functions, Constraint objects of python-constraint."""

import copy
import inspect

from .. import _core
from ._absent import NotSupported
from .util import evaluate


def as_list(restrictions):
    """A list of restrictions from one or several."""
    if restrictions is None:
        return []
    if isinstance(restrictions, (list, tuple)) and not (
            isinstance(restrictions, tuple) and len(restrictions) == 2 and _is_constraint(restrictions[0])):
        return list(restrictions)
    return [restrictions]


def _is_constraint(restriction):
    return any(base.__name__ == "Constraint" for base in type(restriction).__mro__)


def add_restrictions(problem, restrictions, names):
    """Adds each to the problem: strings as expressions where ergotune's language has them, else as Python's."""
    for restriction in as_list(restrictions):
        text = restriction if isinstance(restriction, str) else text_of_constraint(restriction, names)
        if text is not None and _parses(text, names):
            problem.restrict(text)
        else:
            problem.restrict(_in_place_of(restriction, function_of(restriction, names)))


def _in_place_of(restriction, condition):
    """A function of a dict that has the name and, for sessions, the identity of the restriction."""
    def holds(values, /):
        return condition(values)

    holds.__signature__ = inspect.signature(holds)  # not that of the restriction
    holds.__name__, holds.__wrapped__ = condition.__name__, restriction
    return holds


def _parses(text, names):
    trial = _core.Problem("trial")
    for name in names:
        trial.add_parameter(name, [1])
    try:
        trial.restrict(text)
        _core.SearchSpace(trial)
    except _core.UserError:
        return False
    return True


def function_of(restriction, names):
    """A function of a dict with the configuration, whatever the restriction is."""
    names = list(names)
    if isinstance(restriction, tuple) and len(restriction) == 2 and _is_constraint(restriction[0]):
        restriction, names = restriction[0], list(restriction[1])
    if _is_constraint(restriction):
        call = _asked_of_its_library(restriction, names)
    elif isinstance(restriction, str):
        def call(values):
            return bool(evaluate(restriction, {name: values[name] for name in names}))
    elif callable(restriction):
        call = _call_of(restriction, names)
    else:
        raise NotSupported(f"ergotune.kernel_tuner does not support a restriction of type {type(restriction).__name__}: "
                           "use a text, a function of the parameters, or a Constraint object of python-constraint")
    call.__name__ = restriction if isinstance(restriction, str) else getattr(restriction, "__name__", type(restriction).__name__)
    return call


def text_of_constraint(restriction, names):
    """A Constraint object of python-constraint as an expression; None for what is none of those that count and compare."""
    if isinstance(restriction, tuple) and len(restriction) == 2 and _is_constraint(restriction[0]):
        restriction, names = restriction
    if not _is_constraint(restriction):
        return None
    held, names = vars(restriction), list(names)
    factors = held.get("_multipliers") or [1] * len(names)
    total = " + ".join(name if factor == 1 else f"{factor!r} * {name}" for name, factor in zip(names, factors))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1:]]
    texts = {
        "MaxSumConstraint": lambda: f"{total} <= {held['_maxsum']!r}", "MinSumConstraint": lambda: f"{total} >= {held['_minsum']!r}",
        "ExactSumConstraint": lambda: f"{total} == {held['_exactsum']!r}",
        "MaxProdConstraint": lambda: f"{' * '.join(names)} <= {held['_maxprod']!r}",
        "MinProdConstraint": lambda: f"{' * '.join(names)} >= {held['_minprod']!r}",
        "AllDifferentConstraint": lambda: " and ".join(f"{a} != {b}" for a, b in pairs) or "True",
        "AllEqualConstraint": lambda: " and ".join(f"{a} == {b}" for a, b in pairs) or "True",
    }
    try:
        return texts[type(restriction).__name__]()
    except KeyError:  # another kind, or another version of the library: it is asked itself
        return None


def _asked_of_its_library(restriction, names):
    """python-constraint answers for its own objects: a problem of one configuration has a solution, or has none."""
    import importlib

    library = importlib.import_module(type(restriction).__module__.split(".")[0])

    def call(values):
        problem = library.Problem()
        for name in names:
            problem.addVariable(name, [values[name]])
        problem.addConstraint(copy.deepcopy(restriction), names)
        return problem.getSolution() is not None

    return call


def _call_of(function, names):
    """Kernel Tuner calls functions of one argument with a dict, and functions whose arguments are parameters by name."""
    try:
        arguments = inspect.signature(function).parameters
    except (TypeError, ValueError):
        arguments = {}
    if any(a.kind is a.VAR_POSITIONAL for a in arguments.values()):
        return lambda values: bool(function(*(values[name] for name in names)))
    if arguments and all(name in names for name in arguments):
        return lambda values: bool(function(**{name: values[name] for name in arguments}))
    return lambda values: bool(function({name: values[name] for name in names}))
