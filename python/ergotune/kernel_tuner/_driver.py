"""Who is evaluated next, and what became of it: one driver for live and simulated tuning.

A strategy of ergotune's asks; what the cache knows is answered from it at once, the rest is measured (live: by the
session, which sees the driver as a strategy). Every new row goes into the results and into the cache file as it comes.
"""

import threading
import time
from datetime import datetime, timezone

from .. import _core
from ._cache import key_of
from ._errors import InvalidConfig
from .util import get_result_cost, print_config_output, process_metrics

_current = threading.local()


class Plan:
    """What is searched for, and how long.

    Attributes:
        names: the tunable parameters, in their order.
        objectives, higher: result keys and whether more is better.
        strategy, options: ergotune's strategy; seed.
        evaluations: function of the space's size: configurations at most. seconds: at most, or None.
        start: a configuration that comes first, or None.
    """

    def __init__(self, names, objectives, higher, strategy, options, seed, evaluations, seconds, start):
        self.names, self.objectives, self.higher = names, objectives, higher
        self.strategy, self.options, self.seed = strategy, options, seed
        self.evaluations, self.seconds, self.start = evaluations, seconds, start


class Driver:
    """Asks a strategy, answers from the cache, keeps rows. See the module."""

    def __init__(self, plan, cache, metrics, tune_params, quiet):
        self.plan, self.cache, self.metrics = plan, cache, metrics
        self.tune_params, self.quiet = tune_params, quiet
        self.results, self.failure = [], None
        self.strategy_seconds = 0.0
        self._rows = {}  # by index: what was told to the strategy
        self._deadline = None if plan.seconds is None else time.monotonic() + plan.seconds

    def begin(self, space):
        """The space is known now."""
        self.space = space
        self.left = self.plan.evaluations(len(space))
        self._strategy = _core.Strategy(self.plan.strategy, space, self.plan.seed, self.left, len(self.plan.objectives),
                                        self.plan.options)
        self._first = []
        if self.plan.start is not None:
            wanted = dict(zip(self.plan.names, self.plan.start))
            if len(self.plan.start) != len(self.plan.names):
                raise ValueError(f"Invalid x0: {self.plan.start}, it needs {len(self.plan.names)} values")
            wanted.update({n: space[0][n] for n in space.parameter_names if n not in wanted})
            index = space.index_of(wanted)
            if index is None:
                raise ValueError(f"Invalid x0: {self.plan.start} is not in the search space")
            self._first = [index]

    def configuration(self, index):
        """The tunable parameters of a configuration, without what stands for functions."""
        values = self.space[index]
        return {name: values[name] for name in self.plan.names}

    def out_of_time(self):
        return self._deadline is not None and time.monotonic() >= self._deadline

    def ask(self, count):
        """Indices that are to be measured; none when the search is over. What the cache knows is answered here."""
        wanted = []
        while len(wanted) < count and self.left > 0 and self.failure is None and not self.out_of_time():
            batch = self._next(min(count - len(wanted), self.left))
            if not batch:
                break
            for index in batch:
                if index in self._rows:  # x0, which the strategy found by itself
                    self._tell_strategy(index, self._rows[index])
                    continue
                self.left -= 1
                known = self.cache.find(key_of(self.configuration(index).values())) if self.cache else None
                if known is None:
                    wanted.append(index)
                else:
                    self.take_known(index, known)
        return wanted

    def _next(self, count):
        if self._first:
            return [self._first.pop()]
        started = time.perf_counter()
        batch = self._strategy.ask(count)
        self.strategy_seconds += time.perf_counter() - started
        return batch

    def take_known(self, index, row):
        """A row of the cache counts as evaluated, but no time was spent on it."""
        row = {**self.configuration(index), **row, "compile_time": 0, "verification_time": 0, "benchmark_time": 0}
        self._finish(index, row, new=False)

    def take(self, index, row):
        """A row that was measured (or simulated) now."""
        self._finish(index, row, new=True)

    def _finish(self, index, row, new):
        if self.metrics and "__error__" not in row:
            process_metrics(row, self.metrics)
        if new:
            row.setdefault("timestamp", str(datetime.now(timezone.utc)))
            print_config_output(self.tune_params, row, self.quiet, self.metrics, None)
            if self.cache is not None:
                self.cache.add(key_of(self.configuration(index).values()), dict(row))
        self.results.append(row)
        self._rows[index] = row
        self._tell_strategy(index, row)

    def _tell_strategy(self, index, row):
        costs = get_result_cost(row, self.plan.objectives, self.plan.higher)
        started = time.perf_counter()
        self._strategy.tell(index, costs, "__error__" not in row)
        self.strategy_seconds += time.perf_counter() - started

    def amortise(self, total_seconds, simulated):
        """Spreads the strategy's and the tuner's own time (ms) over the rows, as Kernel Tuner does."""
        kinds = () if simulated else ("compile_time", "verification_time", "benchmark_time")
        spent = sum(row.get(kind, 0) for row in self.results for kind in kinds) / 1e3
        own = max(total_seconds - self.strategy_seconds - spent, 0.0)
        for row in self.results:
            row["strategy_time"] = 1e3 * self.strategy_seconds / len(self.results)
            if simulated or not row.get("framework_time"):
                row["framework_time"] = 1e3 * own / len(self.results)


class _SessionStrategy:
    """The driver as a native session sees it."""

    def __init__(self, driver, space):
        self.driver = driver
        driver.begin(space)

    def ask(self, count):
        try:
            return self.driver.ask(count)
        except BaseException as failure:
            self.driver.failure = failure
            raise

    def tell(self, index, values, ok):
        """Rows come by Driver.take, which has told the strategy."""


STRATEGY = "kernel_tuner"
_registered = threading.Lock()


def as_strategy(driver):
    """Makes the next session of this thread ask ``driver``; gives the strategy's name."""
    with _registered:
        if STRATEGY not in _core.strategies():
            _core.register_strategy(STRATEGY, lambda space, seed, options: _SessionStrategy(_current.driver, space),
                                    "the driver of ergotune.kernel_tuner")
    _current.driver = driver
    return STRATEGY


def simulate(driver, space, cache, restrictions_hold):
    """Evaluates from the cache alone. Returns the time (ms) that the configurations took when they were measured."""
    driver.cache = None
    driver.begin(space)
    limit = driver.plan.seconds
    simulated, began = 0.0, time.monotonic()
    while True:
        if limit is not None and time.monotonic() - began + simulated / 1e3 >= limit:
            return simulated
        batch = driver.ask(1)
        if not batch:
            return simulated
        index = batch[0]
        configuration = driver.configuration(index)
        row = cache.find(key_of(configuration.values()))
        if row is None:
            if restrictions_hold(configuration):
                raise ValueError(f"kernel configuration {tuple(configuration.values())} not in cache - in simulation mode, "
                                 "all configurations must be present in the cache")
            row = {**configuration, "__error__": InvalidConfig(), "compile_time": 0, "verification_time": 0,
                   "benchmark_time": 0}
        row = {**configuration, **row}
        try:
            simulated += row["compile_time"] + row["verification_time"] + row["benchmark_time"]
        except KeyError:
            if limit is not None:
                raise RuntimeError("Cannot use simulation mode with a time limit on a cache file that does not have full "
                                   "compile, verification, and benchmark timings on all configurations") from None
        driver.take(index, row)
