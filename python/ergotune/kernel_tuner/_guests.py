"""Strategies written for Kernel Tuner's runners (objects with ``tune(searchspace, runner, tuning_options)``), asked like
ergotune's own: each runs in a thread of its own, and its runner waits there until what it wants is evaluated."""

import threading
from collections import deque

from ._rows import InvalidConfig, StopCriterionReached, plain
from .searchspace import Searchspace
from .util import Options, copy_without_benchmark_timings


class GuestRunner:
    """What a guest sees of the runner: ``run`` gives a row for each configuration, None for those after the budget's end."""

    def __init__(self, guest, quiet, simulation):
        self._guest = guest
        self.quiet, self.simulation_mode, self.units = quiet, simulation, {}
        self.accumulated_strategy_time = 0

    def run(self, parameter_space, tuning_options):
        return self._guest.evaluate([tuple(plain(v) for v in values) for values in parameter_space])

    def add_strategy_time(self, seconds):
        """It is taken here anyway."""

    def available_parallelism(self):
        return 1

    def shutdown(self):
        """Nothing to do."""


class Guest:
    """Such a strategy with ``ask`` and ``tell``. ``rows``: by index, what is evaluated; the driver fills it before ``tell``."""

    def __init__(self, strategy, space, rows, options, quiet):
        self.options = Options(options)
        self.space = Searchspace._of(space, self.options["tune_params"], self.options["restrictions"])
        self.budget = self.options["budget"]
        self._strategy, self._rows, self._quiet = strategy, rows, quiet
        self._turn = threading.Condition()
        self._wanted, self._outstanding = deque(), set()
        self._thread, self._ended, self._over, self._failure = None, False, False, None
        self._returned = None

    # -- the driver's side ------------------------------------------------------------------------------------------

    def ask(self, count):
        """Up to ``count`` indices; fewer while it waits for outcomes, none with nothing outstanding when it has ended."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kernel-tuner-strategy", daemon=True)
            self._thread.start()
        with self._turn:
            self._turn.wait_for(lambda: self._wanted or self._outstanding or self._ended)
            self._raise()
            taken = [self._wanted.popleft() for _ in range(min(count, len(self._wanted)))]
            self._outstanding.update(taken)
            return taken

    def tell(self, index, values, ok):
        """An outcome; its row is among ``rows`` already."""
        with self._turn:
            self._outstanding.discard(index)
            self.budget.add_evaluations()
            self._turn.notify_all()

    def finish(self):
        """The budget is spent, or the caller gave up: the strategy is ended and waited for. Gives the rows that it gave (what it
        evaluated again is among them again), or None. Raises what it raised."""
        with self._turn:
            self._over = True
            self._turn.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._raise()
        rows = self._returned
        return list(rows) if isinstance(rows, (list, tuple)) and rows and all(isinstance(row, dict) for row in rows) else None

    def _raise(self):
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- the guest's side -------------------------------------------------------------------------------------------

    def _run(self):
        try:
            runner = GuestRunner(self, self._quiet, self.options["simulation_mode"])
            self._returned = self._strategy.tune(self.space, runner, self.options)
        except BaseException as failure:  # Kernel Tuner's own word for the end is another class of the same name
            if type(failure).__name__ != StopCriterionReached.__name__:
                self._failure = failure
        finally:
            with self._turn:
                self._ended = True
                self._turn.notify_all()

    def evaluate(self, configurations):
        indices = [self.space.get_param_config_index(c) for c in configurations]
        with self._turn:
            known = {index for index in indices if index in self._rows}
            fresh = dict.fromkeys(i for i in indices if i is not None and i not in known)
            self._wanted.extend(fresh)
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._over or all(index in self._rows for index in fresh))
            rows = []
            for index, configuration in zip(indices, configurations):
                rows.append(self._row(index, configuration, index in known))
                known.add(index)  # the second time it costs nothing
            return rows

    def _row(self, index, configuration, known):
        if index is None:
            return {**dict(zip(self.space.param_names, configuration)), "__error__": InvalidConfig(), "compile_time": 0,
                    "verification_time": 0, "benchmark_time": 0}
        row = self._rows.get(index)
        if row is None:
            return None
        return copy_without_benchmark_timings(row) if known else dict(row)


def guest_options(call, plan, restrictions, metrics, verbose, simulation):
    """What ``tune`` is given beside space and runner; the budget is added once the space is known."""
    return {"tune_params": call["tune_params"], "restrictions": restrictions, "verbose": verbose, "metrics": metrics,
            "objective": plan.objectives, "objective_higher_is_better": plan.higher, "simulation_mode": bool(simulation),
            "strategy_options": Options(plan.options), "strategy": plan.strategy, "cache": {}, "cachefile": None,
            "simulated_time": 0}
