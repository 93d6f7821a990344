"""What strategies written for Kernel Tuner call: the cost of a configuration, and moves between numbers and values."""

import sys

import numpy as np

from .. import util
from .._rows import InvalidConfig


class CostFunc:
    """The cost of a configuration: ``cost_func(x)`` evaluates it, counts it, and gives what is minimised.

    Args:
        searchspace: the :class:`Searchspace`. tuning_options, runner: as ``tune()`` gets them.
        scaling: whether ``x`` is in scaled coordinates (:meth:`get_bounds_x0_eps`). snap: whether ``x`` is moved to the
            nearest values. invalid_value, return_invalid: kept as attributes.

    Raises ``util.StopCriterionReached`` once the budget is spent.
    """

    def __init__(self, searchspace, tuning_options, runner, *, scaling=False, snap=True, return_invalid=False,
                 invalid_value=sys.float_info.max):
        self.searchspace, self.tuning_options, self.runner = searchspace, tuning_options, runner
        self.objective = tuning_options["objective"]
        self.objective_higher_is_better = tuning_options["objective_higher_is_better"]
        self.constraint_aware = bool(tuning_options["strategy_options"].get("constraint_aware"))
        self.scaling, self.snap = scaling, snap
        self.return_invalid, self.invalid_return_value = return_invalid, invalid_value
        self.unique_results, self.results = {}, []
        self.budget_spent_fraction = 0.0

    def __call__(self, x, check_restrictions=True):
        return self.eval(x, check_restrictions=check_restrictions)

    def eval(self, x, check_restrictions=True):
        """The cost of one; a list of costs where there are several objectives."""
        return self.eval_all([x], check_restrictions=check_restrictions)[0]

    def eval_all(self, xs, check_restrictions=True):
        """The cost of each."""
        names = [self.objective] if isinstance(self.objective, str) else self.objective
        ups = [self.objective_higher_is_better] if isinstance(self.objective, str) else self.objective_higher_is_better
        costs = [util.get_result_cost(row, names, ups) for row in self._rows(xs, check_restrictions)]
        return [cost[0] if len(cost) == 1 else cost for cost in costs]

    def get_results(self):
        """Every row, in order."""
        return self.results

    def get_num_unique_results(self):
        """How many different configurations were evaluated."""
        return len(self.unique_results)

    def _rows(self, xs, check_restrictions):
        budget = self.tuning_options["budget"]
        budget.raise_exception_if_done()
        rows, wanted = [], []
        for x in xs:
            config, legal = self._config(x, check_restrictions)
            rows.append(None if legal else {**dict(zip(self.searchspace.tune_params, config)), "__error__": InvalidConfig()})
            if legal:
                wanted.append((len(rows) - 1, config))
        for (place, config), row in zip(wanted, self.runner.run([c for _, c in wanted], self.tuning_options)):
            if row is None:
                continue  # the budget ended before it
            rows[place] = row
            self.unique_results.setdefault(",".join(str(v) for v in config), row)
            self.results.append(row)
        budget.raise_exception_if_done()
        self.budget_spent_fraction = budget.get_fraction_consumed()
        if any(row is None for row in rows):
            raise util.StopCriterionReached("not all of these configurations were evaluated: the budget is spent")
        return rows

    def _config(self, x, check_restrictions):
        """(values, whether they are a configuration)."""
        params = self.searchspace.tune_params
        config = x
        if self.snap and self.scaling:
            config = unscale_and_snap_to_nearest(x, params, self.tuning_options["eps"])
        elif self.snap:
            config = snap_to_nearest_config(x, params)
        legal = not check_restrictions or self.searchspace.is_param_config_valid(tuple(config))
        if not legal and self.constraint_aware:
            nearest = unscale_and_snap_to_nearest_valid(x, config, self.searchspace, self.tuning_options["eps"])
            if nearest:
                return nearest, True
        return config, legal

    def get_start_pos(self):
        """Where to start: x0, or anywhere."""
        return self.get_bounds_x0_eps()[1]

    def get_bounds_x0_eps(self):
        """(bounds, x0, eps): pairs of least and most, a start, and the width of one value; scaled, if ``x`` is."""
        values = list(self.searchspace.tune_params.values())
        x0 = self.tuning_options["strategy_options"].get("x0")
        if x0 is not None and (not isinstance(x0, (tuple, list)) or len(x0) != len(values)):
            raise ValueError(f"Invalid x0: {x0}, expected a value for each of the {len(values)} parameters")
        if not x0:
            x0 = list(self.searchspace.get_random_sample(1)[0])
        if self.scaling:
            eps = float(np.amin([1.0 / len(v) for v in values]))
            bounds = [(0, eps * len(v)) for v in values]
            x0 = scale_from_params(x0, self.searchspace.tune_params, eps)
        else:
            eps, bounds = 1, self.get_bounds()
        self.tuning_options["eps"] = eps
        return bounds, x0, eps

    def get_bounds(self):
        """Least and most of each parameter; first and last where its values are not numbers."""
        bounds = []
        for values in self.searchspace.params_values:
            try:
                bounds.append((min(values), max(values)))
            except TypeError:
                bounds.append((values[0], values[-1]))
        return bounds


def snap_to_nearest_config(x, tune_params):
    """For each parameter the value that is nearest."""
    return [value if value in values else min(values, key=lambda v: abs(v - value))
            for value, values in zip(x, tune_params.values())]


def unscale_and_snap_to_nearest(x, tune_params, eps):
    """Values from scaled coordinates: each value has an interval of width ``eps``."""
    return [values[min(max(int(np.floor(c / eps)), 0), len(values) - 1)] for c, values in zip(x, tune_params.values())]


def scale_from_params(params, tune_params, eps):
    """Scaled coordinates: the middles of the values' intervals."""
    return np.array([(0.5 + list(values).index(value)) * eps for value, values in zip(params, tune_params.values())])


def unscale_and_snap_to_nearest_valid(x, params, searchspace, eps):
    """The neighbour of ``params`` that is in the space and nearest to ``x``; [] where there is none."""
    neighbors = get_neighbors(params, searchspace)
    return min(neighbors, default=[],
               key=lambda n: np.linalg.norm(np.asarray(x) - scale_from_params(n, searchspace.tune_params, eps)))


def get_neighbors(params, searchspace):
    """Its nearest neighbours that the space has, by the strictest method that finds some."""
    for method in ("strictly-adjacent", "adjacent", "Hamming"):
        neighbors = searchspace.get_neighbors(tuple(params), neighbor_method=method)
        if neighbors:
            return neighbors
    return []


def get_options(strategy_options, options, unsupported=None):
    """The values of a strategy's options ({name: (meaning, default)}). Raises ValueError for one that it does not have."""
    general = [o for o in ("max_fevals", "time_limit", "x0", "searchspace_construction_options") if o not in (unsupported or ())]
    accepted = [o for o in options if o not in (unsupported or ())] + general
    for key in strategy_options:
        if key not in accepted:
            raise ValueError(f"Unrecognized option {key} in strategy_options (allowed: {accepted})")
    return [strategy_options.get(option, default) for option, (_, default) in options.items()]


def make_strategy_options_doc(strategy_options):
    """A line per option."""
    return "".join(f"     * {name}: {meaning}, default {default}. \n" for name, (meaning, default) in strategy_options.items()) + "\n"


def get_strategy_docstring(name, strategy_options):
    """The docstring of a strategy's tune()."""
    return (f" Find the best performing kernel configuration with {name}; strategy_options:\n\n"
            + make_strategy_options_doc(strategy_options))


def setup_method_arguments(method, bounds):
    """Keyword arguments of scipy.optimize.minimize that a method takes."""
    return {"bounds": bounds} if method in ("L-BFGS-B", "TNC", "SLSQP") else {}


def setup_method_options(method, tuning_options):
    """Its options."""
    most = tuning_options["strategy_options"].get("maxiter", 100)
    options = {"maxiter": most}
    if method in ("Nelder-Mead", "Powell"):
        options["maxfev"] = most
    elif method == "L-BFGS-B":
        options["maxfun"] = most
    if method in ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"):
        options["eps"] = tuning_options["eps"]
    elif method == "COBYLA":
        options["rhobeg"] = tuning_options["eps"]
    if method != "TNC":
        options["disp"] = tuning_options["verbose"]
    return options
