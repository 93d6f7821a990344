"""How outputs are checked."""

import inspect
from pathlib import Path

import numpy as np

from ._problem import elements
from ._tensors import GpuArray, is_array, on_host, order_of
from ._tunable import is_tunable, leaves, named


def host_arguments(actual, arguments, configuration=None):
    """A configuration's arguments as its kernel left them: arrays in their own shape, order and type, scalars as they were given."""
    host = []
    for name, argument in named(arguments, configuration):
        if not is_array(argument):
            host.append(argument)
        elif name not in actual:  # a tensor that the kernel does not write
            host.append(argument.host())
        else:
            dtype = argument.dtype if argument.dtype.isnative else argument.dtype.newbyteorder("=")
            host.append(actual[name].view(dtype).reshape(argument.shape, order=order_of(argument)))
    return host


def left_in_place(actual, arguments):
    """What run_kernel gives: as :func:`host_arguments`, but a GPU's tensors hold what the kernel left themselves."""
    host = host_arguments(actual, arguments)
    return [placed_argument.leave(left) if isinstance(placed_argument, GpuArray) else left
            for (_, placed_argument), left in zip(named(arguments, None), host)]


def set_verification(problem, arguments, answer, atol, verify, watch, scratch, current, driver):
    """Says to the problem how outputs are checked; gives the function that does it in this process, or None. ``current``
    knows the configuration (:class:`_tunable.Current`); what ``verify`` raises ends the search of ``driver``."""
    if answer is not None and not is_tunable(answer) and len(answer) != len(arguments):
        raise TypeError("The length of argument list and provided results do not match.")
    watching = watch is not None and watch.outputs
    if verify is None and not watching:
        if answer is None or not is_tunable(answer) and all(a is None for a in answer):
            problem.set_verification("none")
            return None
        files = None if is_tunable(answer) else _answer_files(arguments, answer, scratch)
        if files is not None:
            problem.set_verification("files", absolute_tolerance=atol, relative_tolerance=1e-5, files=files)
            return None
    problem.set_verification("none")
    takes_atol = verify is not None and "atol" in _names(verify)

    def check(actual, expected):
        host = host_arguments(actual, arguments, current.params)
        wanted = answer.select_for_configuration(current.params) if is_tunable(answer) else answer
        if watching:
            watch.process_output(wanted, [h if isinstance(h, np.ndarray) else None for h in host])
        if verify is not None:
            seen = _as_given(host, arguments, wanted, current.params)
            try:
                return bool(verify(wanted, seen, atol=atol) if takes_atol else verify(wanted, seen))
            except BaseException as failure:
                driver.failure = driver.failure or failure
                raise
        if watching:
            return True
        return all(a is None or np.allclose(np.ravel(on_host(a)), np.ravel(h), atol=1e-6 if atol is None else atol)
                   for a, h in zip(wanted, host))

    return check


def _as_given(host, arguments, answer, configuration):
    """Outputs as arrays of the libraries that the arguments are of."""
    answers = answer if answer is not None else [None] * len(host)
    return [argument.like(left, expected) if isinstance(argument, GpuArray) else left
            for (_, argument), left, expected in zip(named(arguments, configuration), host, answers)]


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
        expected = np.asarray(on_host(expected))
        for name, argument, _ in leaves(i, place):
            if not is_array(argument):
                continue  # a scalar is no output
            if expected.size != argument.size:
                raise TypeError(f"Element {i} of the expected results list has size {expected.size}, the argument {argument.size}")
            if argument.dtype.kind not in "iuf" or (argument.dtype.kind in "iu" and expected.dtype.kind == "f"):
                return None
            file = Path(scratch) / f"{name}.bin"
            laid_out = np.ravel(expected).reshape(argument.shape)  # elements with the same indices are compared, however each lies
            elements(laid_out.astype(argument.dtype.newbyteorder("="), order=order_of(argument))).tofile(file)
            files[name] = str(file)
    return files
