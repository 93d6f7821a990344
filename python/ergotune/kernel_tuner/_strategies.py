"""Kernel Tuner's strategies: their names here, their options, and how much they evaluate by default."""

import math
import numbers
import warnings

from ._absent import AbsentModule

_HILL = dict.fromkeys(("neighbor", "restart", "order", "randomize"))
_POPULATION = dict.fromkeys(("popsize", "maxiter", "constraint_aware"))

#: Name here, options with Kernel Tuner's defaults where they decide on the budget, and whether x0 may be given.
STRATEGIES = {
    "brute_force": ("brute_force", {}, False),
    "random_sample": ("random", {"fraction": 0.1}, False),
    "minimize": ("hill_climbing", {"method": None}, True),
    "basinhopping": ("basin_hopping", {"method": None, "T": None}, True),
    "diff_evo": ("differential_evolution",
                 {**_POPULATION, "popsize_times_dimensions": None, "F": None, "CR": None, "method": None}, True),
    "genetic_algorithm": ("genetic", {**_POPULATION, "method": None, "mutation_chance": None}, True),
    "greedy_mls": ("multi_start_local_search", _HILL, True),
    "ordered_greedy_mls": ("multi_start_local_search", _HILL, True),
    "mls": ("multi_start_local_search", _HILL, True),
    "greedy_ils": ("iterated_local_search",
                   dict.fromkeys(("neighbor", "restart", "no_improvement", "random_walk")), True),
    "dual_annealing": ("dual_annealing", {"method": None}, True),
    "pso": ("particle_swarm", {**_POPULATION, "w": None, "c1": None, "c2": None}, True),
    "simulated_annealing": ("simulated_annealing",
                            dict.fromkeys(("T", "T_min", "alpha", "maxiter", "constraint_aware")), True),
    "skopt": ("bayesian", dict.fromkeys(("learner", "acq_func", "lie_strategy", "kappa", "num_initial", "batch_size",
                                                "skopt_kwargs")), True),
    "firefly_algorithm": ("firefly", {**_POPULATION, "B0": None, "gamma": None, "alpha": None}, True),
    "bayes_opt": ("bayesian", dict.fromkeys((
        "covariancekernel", "covariancelengthscale", "method", "samplingmethod", "popsize", "max_threshold", "acq_params")),
        False),
    "pyatf_strategies": ("bandit", dict.fromkeys(("searchtechnique", "use_searchspace_cache")), False),
    "hybrid_vndx": ("variable_neighbourhood", dict.fromkeys((
        "budget", "k", "cand_pool", "restart_iter", "tabu_size", "elite_size", "temp0", "cooling", "constraint_aware")), False),
    "adaptive_tabu_greywolf": ("grey_wolf", dict.fromkeys((
        "budget", "pack_size", "tabu_factor", "shake_rate", "jump_rate", "stagn_limit", "restart_ratio", "t0", "t_decay",
        "t_min", "constraint_aware")), False),
    "nsga2": ("nsga2", dict.fromkeys((
        "popsize", "crossover_operator", "crossover_prob", "mutation_prob", "ref_dirs_list")), False),
    "nsga3": ("nsga2", dict.fromkeys((
        "popsize", "crossover_operator", "crossover_prob", "mutation_prob", "ref_dirs_list")), False),
}

_GENERAL = ("max_fevals", "time_limit", "x0", "searchspace_construction_options", "strategy")
_USED = ("max_fevals", "time_limit", "x0")
#: Options that mean the same here: Kernel Tuner's name to (strategies here, name here).
_SAME = {
    "popsize": ({"genetic", "differential_evolution", "particle_swarm", "firefly", "nsga2"}, "population"),
    "pack_size": ({"grey_wolf"}, "population"),
    "w": ({"particle_swarm"}, "inertia"),
    "F": ({"differential_evolution"}, "weight"),
    "CR": ({"differential_evolution"}, "crossover"),
}
_CLIMBERS = {"multi_start_local_search", "iterated_local_search"}
_NEIGHBOURS = {"hamming": "hamming", "adjacent": "adjacent"}


def by_name(strategy):
    """The name of the strategy whose module of Kernel Tuner's is given (``strategies.minimize``); anything else as it is."""
    name = strategy.__name__.rpartition(".")[2] if isinstance(strategy, AbsentModule) else None
    return name if name in STRATEGIES else strategy


def resolve(strategy, options):
    """(name here, options here). Raises ValueError for names and options that Kernel Tuner does not know either, TypeError
    for limits that are no numbers; says which of its options have no counterpart here."""
    from .. import strategies

    for option in ("max_fevals", "time_limit", "fraction"):
        value = options.get(option)
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
            raise TypeError(f"{option} is a number, not {value!r}")
    if hasattr(strategy, "tune"):  # written for Kernel Tuner's runners; its options are its own
        return strategy, options
    name = strategy or "brute_force"
    if name not in STRATEGIES:
        if name in strategies():  # ergotune's own, with its own options
            return name, {k: v for k, v in options.items() if k not in _GENERAL}
        raise ValueError(f"Unkown strategy {strategy}, must be one of: {', '.join(STRATEGIES)}")
    here, known, takes_x0 = STRATEGIES[name]
    if "x0" in options and not takes_x0:
        raise ValueError(f"Starting point (x0) is not supported by strategy {name}")
    mine, unused = {}, []
    for option, value in options.items():
        if option in _USED or option == "fraction" and name == "random_sample":
            continue
        if option in _GENERAL:
            unused.append(option)
            continue
        if option not in known:
            raise ValueError(f"Unrecognized option {option} in strategy_options (allowed: {[*known, *_GENERAL]})")
        if option in _SAME and here in _SAME[option][0] and value is not None:
            mine[_SAME[option][1]] = value
        elif option == "neighbor" and here in _CLIMBERS and str(value).lower() in _NEIGHBOURS:
            mine["neighbourhood"] = _NEIGHBOURS[str(value).lower()]
        elif option != "constraint_aware" or not value:  # all of ours are
            unused.append(option)
    if unused:
        warnings.warn(f"{name} is ergotune's {here} here, which has no option like {', '.join(unused)}: left out "
                      f"(its own options: the page \"Search strategies\")", stacklevel=4)
    return here, mine


def default_evaluations(strategy, options, size):
    """Configurations that are evaluated at most; ``size`` is the whole space.

    Kernel Tuner's own defaults where a strategy has one (a tenth for random_sample, 100 for climbers). Its other strategies
    end when they stop finding anything new; ours do not end by themselves, and take a tenth of the space, at least 100.
    """
    if options.get("max_fevals") is not None:
        if options["max_fevals"] <= 0:
            raise ValueError("max_fevals must be greater than zero")
        return min(int(options["max_fevals"]), size)
    name = strategy or "brute_force"
    if name == "brute_force" or hasattr(strategy, "tune"):
        return size
    if name == "random_sample":
        fraction = options.get("fraction", 0.1)
        if not 0 <= fraction <= 1:
            raise ValueError("fraction must be in [0, 1]")
        return math.ceil(size * fraction)
    if name in ("mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils"):
        return min(size, 100)
    return size if "time_limit" in options else min(size, max(100, math.ceil(size / 10)))
