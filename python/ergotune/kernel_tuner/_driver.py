"""Who is evaluated next, and what became of it: one driver for live and simulated tuning.

A strategy of ergotune's asks; what the cache knows is answered from it at once, the rest is measured (live: by the
session, which sees the driver as a strategy). Every new row goes into the results and into the cache file as it comes.
"""

import threading
import time
from datetime import datetime, timezone

from .. import _core
from ._cache import key_of
from ._rows import InvalidConfig
from ._guests import Guest
from .util import UNITS, TuningBudget, get_result_cost, print_config_output, process_metrics

_current = threading.local()


class Plan:
    """What is searched for, and how long.

    Attributes:
        names: the tunable parameters, in their order.
        objectives, higher: result keys and whether more is better.
        strategy, options: ergotune's strategy, or an object with tune() written for Kernel Tuner's runners; seed.
        evaluations: function of the space's size: configurations at most. seconds: at most, or None.
        start: a configuration that comes first, or None.
    """

    def __init__(self, names, objectives, higher, strategy, options, seed, evaluations, seconds, start):
        self.names, self.objectives, self.higher = names, objectives, higher
        self.strategy, self.options, self.seed = strategy, options, seed
        self.evaluations, self.seconds, self.start = evaluations, seconds, start


class Driver:
    """Asks a strategy, answers from the cache, keeps rows. See the module."""

    def __init__(self, plan, cache, metrics, tune_params, quiet, guest_options=None):
        self.plan, self.cache, self.metrics, self.guest_options = plan, cache, metrics, guest_options
        self.tune_params, self.quiet = tune_params, quiet
        self.results, self.failure, self.guest = [], None, None
        self.strategy_seconds = 0.0
        self.rows = {}  # by index: what was told to the strategy
        self._deadline = None if plan.seconds is None else time.monotonic() + plan.seconds

    def begin(self, space):
        """The space is known now."""
        self.space = space
        self.left = self.plan.evaluations(len(space))
        if isinstance(self.plan.strategy, str):
            self._strategy = _core.Strategy(self.plan.strategy, space, self.plan.seed, self.left, len(self.plan.objectives),
                                            self.plan.options)
        else:
            options = {**self.guest_options, "budget": TuningBudget(self.plan.seconds, self.left)}
            self._strategy = self.guest = Guest(self.plan.strategy, space, self.rows, options, self.quiet)
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

    def finish(self):
        """Ends the strategy; its rows are the results."""
        if self.guest is not None:
            self.results = self.guest.finish() or self.results

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
                if index in self.rows:  # x0, which the strategy found by itself
                    self._tell_strategy(index, self.rows[index])
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
        self._add(index, row)
        self._tell_strategy(index, row)

    def take(self, index, row):
        """A row that was measured (or simulated) now."""
        self.keep(index, row)
        if self.cache is not None:
            self.cache.add(key_of(self.configuration(index).values()), dict(row))
        self._tell_strategy(index, row)

    def keep(self, index, row):
        """A new row, with its time and shown."""
        self._add(index, row)
        if "timestamp" not in row:
            row["timestamp"] = str(datetime.now(timezone.utc))
        if not self.quiet:
            print_config_output(self.tune_params, row, self.quiet, self.metrics, UNITS)

    def _add(self, index, row):
        """With its metrics, among the results."""
        if self.metrics and "__error__" not in row:
            process_metrics(row, self.metrics)
        self.results.append(row)
        self.rows[index] = row

    def run(self, evaluate, known=None):
        """Lets the strategy ask by itself: ``evaluate(index, values)`` gives what it minimises, or None to end. Of what
        ``known`` has by its values, (what is minimised, row), the row goes straight into the results."""
        for index in self._first:
            costs = evaluate(index, tuple(self.configuration(index).values()))
            if costs is None:
                return
            self._strategy.tell(index, costs or [], costs is not False)
            self.left -= 1
        self.strategy_seconds += self._strategy.run(evaluate, self.left, known, self.results)

    def _tell_strategy(self, index, row):
        costs = get_result_cost(row, self.plan.objectives, self.plan.higher)
        started = time.perf_counter()
        self._strategy.tell(index, costs, "__error__" not in row)
        self.strategy_seconds += time.perf_counter() - started

    def amortise(self, total_seconds, simulated):
        """Spreads the strategy's and the tuner's own time (ms) over the rows, as Kernel Tuner does. Gives the sums of the
        rows' times by kind."""
        spent = 0 if simulated else sum(row.get(kind, 0) for row in self.results for kind in _SPENT) / 1e3
        count = max(len(self.results), 1)
        strategy = 1e3 * self.strategy_seconds / count
        own = 1e3 * max(total_seconds - self.strategy_seconds - spent, 0.0) / count
        totals = dict.fromkeys(("framework_time", "strategy_time", *_SPENT), 0.0)
        for row in self.results:
            row["strategy_time"] = strategy
            if simulated or not row.get("framework_time"):
                row["framework_time"] = own
            for kind in totals:
                totals[kind] += row.get(kind) or 0
        return totals


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
        """Unused: rows reach the strategy through Driver.take."""


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


#: Where a configuration's time (ms) goes that is not the tuner's own.
_SPENT = ("compile_time", "verification_time", "benchmark_time")


class _Simulation:
    """Rows from a cache in the place of measurements."""

    def __init__(self, driver, cache, restrictions_hold):
        self.driver, self.rows, self.restrictions_hold = driver, cache.by_values(), restrictions_hold
        self.spent = 0.0  # ms that the configurations took when they were measured, where there is a limit
        self._began, self._limit = time.monotonic(), driver.plan.seconds
        self._goals = list(zip(driver.plan.objectives, driver.plan.higher))
        self._again = driver.plan.start is not None

    def known(self):
        """In the usual case, which asks for nothing beside the row: (what is minimised, row) by values."""
        driver = self.driver
        if driver.metrics or self._again or self._limit is not None or len(self._goals) != 1 or not driver.quiet:
            return None
        name, up = self._goals[0]
        sign = -1.0 if up else 1.0
        return {values: (sign * row[name], row) for values, row in self.rows.items()
                if isinstance(row.get(name), (int, float)) and "timestamp" in row and "__error__" not in row}

    def out_of_time(self):
        return self._limit is not None and time.monotonic() - self._began + self.spent / 1e3 >= self._limit

    def evaluate(self, index, values):
        """What a strategy minimises of a configuration; its row goes into the results. None where time is out."""
        driver = self.driver
        if self._limit is not None and self.out_of_time():
            return None
        if self._again and index in driver.rows:  # x0, which the strategy found by itself
            return self._cost(driver.rows[index])
        row = self.row(values)
        driver.keep(index, row)
        return self._cost(row)

    def _cost(self, row):
        if "__error__" in row:
            return False
        costs = [-row[name] if up else row[name] for name, up in self._goals]
        return float(costs[0]) if len(costs) == 1 else costs

    def row(self, values):
        """The cache's row of a configuration, or that of one which is not in the space."""
        known = self.rows.get(values)
        if known is None:
            return self._invalid(dict(zip(self.driver.plan.names, values)))
        row = known
        if self._limit is not None:
            try:
                self.spent += sum([row[kind] for kind in _SPENT])
            except KeyError:
                raise RuntimeError("Cannot use simulation mode with a time limit on a cache file that does not have full "
                                   "compile, verification, and benchmark timings on all configurations") from None
        return row

    def _invalid(self, configuration):
        if self.restrictions_hold(configuration):
            raise ValueError(f"kernel configuration {tuple(configuration.values())} not in cache - in simulation mode, "
                             "all configurations must be present in the cache")
        return {**configuration, "__error__": InvalidConfig(), **dict.fromkeys(_SPENT, 0)}


def simulate(driver, space, cache, restrictions_hold):
    """Evaluates from the cache alone."""
    driver.cache = None
    driver.begin(space)
    simulation = _Simulation(driver, cache, restrictions_hold)
    if driver.guest is None:
        driver.run(simulation.evaluate, simulation.known())
    while driver.guest is not None and not simulation.out_of_time():
        batch = driver.ask(1)
        if not batch:
            break
        driver.take(batch[0], simulation.row(tuple(driver.configuration(batch[0]).values())))
