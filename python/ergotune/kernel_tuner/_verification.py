"""How outputs are checked."""

import inspect
from pathlib import Path

import numpy as np

from ._problem import elements
from ._tunable import is_tunable, leaves, named


def host_arguments(actual, arguments, configuration=None):
    """A configuration's arguments as its kernel left them: arrays in their own shape and type, scalars as they were given."""
    host = []
    for name, argument in named(arguments, configuration):
        if isinstance(argument, np.ndarray) and argument.ndim:
            raw = np.ascontiguousarray(actual[name])
            dtype = argument.dtype if argument.dtype.isnative else argument.dtype.newbyteorder("=")
            host.append(raw.view(dtype).reshape(argument.shape) if raw.dtype != dtype else raw.reshape(argument.shape))
        else:
            host.append(argument)
    return host


def set_verification(problem, arguments, answer, atol, verify, watch, scratch, current):
    """Says to the problem how outputs are checked; gives the function that does it in this process, or None. ``current``
    knows the configuration (:class:`_tunable.Current`)."""
    if answer is not None and not is_tunable(answer) and len(answer) != len(arguments):
        raise TypeError("The length of argument list and provided results do not match.")
    watching = watch is not None and watch.outputs
    if verify is None and not watching:
        if answer is None or not is_tunable(answer) and all(a is None for a in answer):
            problem.set_verification("none")
            return None
        files = None if is_tunable(answer) else _answer_files(arguments, answer, scratch)
        if files is not None:
            problem.set_verification("files", absolute_tolerance=float(1e-6 if atol is None else atol),
                                     relative_tolerance=1e-5, files=files)
            return None
    problem.set_verification("none")
    takes_atol = verify is not None and "atol" in _names(verify)

    def check(actual, expected):
        host = host_arguments(actual, arguments, current.params)
        wanted = answer.select_for_configuration(current.params) if is_tunable(answer) else answer
        if watching:
            watch.process_output(wanted, [h if isinstance(h, np.ndarray) else None for h in host])
        if verify is not None:
            return bool(verify(wanted, host, atol=atol) if takes_atol else verify(wanted, host))
        if watching:
            return True
        return all(a is None or np.allclose(np.asarray(a).ravel(), np.ravel(h), atol=1e-6 if atol is None else atol)
                   for a, h in zip(wanted, host))

    return check


def _names(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {"atol"}


def _answer_files(arguments, answer, scratch):
    """Answers as files in the arguments' types; None where a type would lose something (then Python compares)."""
    files = {}
    for i, (place, expected) in enumerate(zip(arguments, answer)):
        if expected is None:
            continue
        expected = np.asarray(expected)
        for name, argument, _ in leaves(i, place):
            if not isinstance(argument, np.ndarray) or not argument.ndim:
                continue  # a scalar is no output
            if expected.size != argument.size:
                raise TypeError(f"Element {i} of the expected results list has size {expected.size}, the argument {argument.size}")
            if argument.dtype.kind not in "iuf" or (argument.dtype.kind in "iu" and expected.dtype.kind == "f"):
                return None
            file = Path(scratch) / f"{name}.bin"
            elements(expected.astype(argument.dtype.newbyteorder("="))).tofile(file)
            files[name] = str(file)
    return files
