"""Kernel Tuner's observers as ergotune's: single launches between the hooks, results of any kind."""

import math

from ._absent import NotSupported


class Device:
    """What an observer sees of the device. Kernel Tuner's backends have such names, which observers print."""

    def __init__(self, name, max_threads, env):
        self.name, self.max_threads, self.env = name, max_threads, env


#: Named as Kernel Tuner's backends, because observers tell users which backend lacks something.
DEVICES = {language: type(name, (Device,), {}) for language, name in {
    "opencl": "OpenCLFunctions", "cuda": "CudaFunctions", "cpp": "CompilerFunctions", "fortran": "CompilerFunctions",
    "hip": "HipFunctions"}.items()}


class Watch:
    """All of a tuning run's observers behind one of ergotune's. ``take`` gives what they found of a configuration."""

    phase = "launches"

    def __init__(self, observers, names, iterations):
        self.names, self.iterations = names, iterations
        self.prologues = [o for o in observers if hasattr(o, "before_start") and _is(o, "PrologueObserver")]
        self.outputs = [o for o in observers if hasattr(o, "process_output")]
        self.plain = [o for o in observers if o not in self.prologues]
        self.all = observers
        self.failure = None
        self._found, self._registered, self._launches, self._seen = {}, None, 0, {}

    def register_configuration(self, configuration):
        params = {name: configuration[name] for name in self.names}
        if self._registered == params:
            return  # again, now that its time is known
        self._registered, self._launches, self._seen = params, 0, {}
        self._call(self.all, "register_configuration", params)

    def before_start(self):
        self._launches += 1
        if self._launches <= len(self.prologues):
            self._now = [self.prologues[self._launches - 1]]
        else:
            self._now = self.plain if self._launches - len(self.prologues) <= self.iterations else []
        self._call(self._now, "before_start")

    def after_start(self):
        self._call(self._now, "after_start")

    def during(self):
        self._call(self._now, "during")

    def after_finish(self):
        self._call(self._now, "after_finish")
        if self._now and self._now[0] in self.prologues:
            self._seen.update(self._results(self._now))

    def get_results(self):
        params, self._registered = self._registered, None
        self._seen.update(self._results(self.plain))
        self._found[tuple(params.values())] = self._seen
        return {}

    def take(self, configuration):
        return self._found.pop(tuple(configuration.values()), {})

    def process_output(self, answer, output):
        self._call(self.outputs, "process_output", answer, output)

    def _results(self, observers):
        found = {}
        for observer in observers:
            found.update(self._call([observer], "get_results") or {})
        return found

    def _call(self, observers, hook, *arguments):
        result = None
        for observer in observers:
            try:
                method = getattr(observer, hook, None)
                result = method(*arguments) if method else None
            except BaseException as failure:  # told to the user as it is, once the session has ended
                self.failure = self.failure or failure
                raise
        return result


class ReturnedTime:
    """The time (ms) that a C or Fortran function returns, as Kernel Tuner has it."""

    def __init__(self, cell):
        self.cell, self.times = cell, []

    def register_configuration(self, params):
        self.times = []

    def after_finish(self):
        self.times.append(self.cell.value)

    def get_results(self):
        if not self.times or any(math.isnan(t) for t in self.times):
            return {}  # it returned no real number: it is timed
        return {"time": sum(self.times) / len(self.times), "times": list(self.times)}


def _is(observer, name):
    """By the name of a base class: Kernel Tuner's own classes count as ours."""
    return any(base.__name__ == name for base in type(observer).__mro__)


def instances(observers, arguments):
    """Observers, made where a function that makes one is given (it gets device, platform, compiler and lang)."""
    made = []
    for observer in observers or ():
        if not hasattr(observer, "get_results") and callable(observer):
            observer = observer(arguments)
        if hasattr(observer, "keys") and _is(observer, "Meter"):
            made.append(observer)
            continue
        if getattr(observer, "continuous_observer", None) is not None or _is(observer, "ContinuousObserver"):
            raise NotSupported("ergotune.kernel_tuner does not support ContinuousObserver: ergotune runs the kernel long enough "
                               'for its own power sensors; use ergotune.tune(problem, objective="energy")')
        if _is(observer, "NVMLObserver") or _is(observer, "TegraObserver") or _is(observer, "PMTObserver"):
            from .observers import __getattr__ as refuse

            refuse(type(observer).__name__)
        if not hasattr(observer, "get_results"):
            raise TypeError(f"an observer has the hooks of BenchmarkObserver: {observer!r} has no get_results")
        made.append(observer)
    return made

