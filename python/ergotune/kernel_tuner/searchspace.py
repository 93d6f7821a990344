"""Kernel Tuner's view of a search space, over ergotune's: lists of tuples, indices, samples and neighbours."""

from random import choice, shuffle
from warnings import warn

import numpy as np

from .. import _core
from ._absent import NotSupported
from ._rows import plain
from ._restrictions import add_restrictions, as_list
from .util import default_block_size_names

supported_neighbor_methods = ["strictly-adjacent", "adjacent", "Hamming", "Hamming-adjacent", "closest-param-indices"]

_FRAMEWORKS = ("pythonconstraint", "pysmt", "pyatf", "atf_cache", "bruteforce")
_SOLVERS = ("pc_backtrackingsolver", "pc_optimizedbacktrackingsolver", "pc_parallelsolver", "pc_recursivebacktrackingsolver",
            "pc_minconflictssolver")


class Searchspace:
    """Every configuration that meets the restrictions, as tuples in the order of ``tune_params``.

    Args:
        tune_params: names to lists of values. restrictions: as those of tune_kernel, or None.
        max_threads: the product of the block sizes is at most this.
        block_size_names: the parameters that are block sizes.
        neighbor_method: what get_neighbors() takes by default; build_neighbors_index works them all out now.
        from_cache: a cache (``util.read_cache``) instead of parameters and restrictions: its rows are the space.
        framework, solver_method: Kernel Tuner's ways of building; checked, and all the same here.

    Attributes:
        list: the configurations; size, indices: how many, and their numbers; tune_params, param_names, params_values.
    """

    def __init__(self, tune_params, restrictions, max_threads, block_size_names=default_block_size_names,
                 defer_construction=False, build_neighbors_index=False, neighbor_method=None, from_cache=None,
                 framework="PythonConstraint", solver_method="PC_OptimizedBacktrackingSolver", path_to_ATF_cache=None):
        _check_ways(defer_construction, framework, solver_method, path_to_ATF_cache)
        if (neighbor_method is not None or build_neighbors_index) and neighbor_method not in supported_neighbor_methods:
            raise ValueError(f"Neighbor method is {neighbor_method}, must be one of {supported_neighbor_methods}")
        if from_cache is not None:
            if tune_params is not None or restrictions is not None or max_threads is not None:
                raise ValueError("with from_cache the arguments tune_params, restrictions and max_threads are None")
            tune_params = from_cache["tune_params"]
        self.tune_params = self.original_tune_params = tune_params
        self.max_threads, self.block_size_names = max_threads, block_size_names
        self.restrictions = as_list(restrictions)
        self.original_restrictions = list(self.restrictions)
        self._modified_restrictions = list(self.restrictions)
        self.build_neighbors_index, self.neighbor_method, self.solver_method = build_neighbors_index, neighbor_method, solver_method
        self._name_parameters()
        if from_cache is not None:
            self.list = [tuple(row[name] for name in self.param_names) for row in from_cache["cache"].values()]
        else:
            self._build()
        self._finish()
        self.neighbors_index = {}
        if build_neighbors_index:
            self.neighbors_index[neighbor_method] = [self._find_neighbors(c, i, neighbor_method) for i, c in enumerate(self.list)]

    @classmethod
    def _of(cls, space, tune_params, restrictions=()):
        """The same of a native space, which may have further parameters."""
        made = cls.__new__(cls)
        made.tune_params = made.original_tune_params = tune_params
        made.max_threads, made.block_size_names = 1 << 30, default_block_size_names
        made.restrictions = as_list(restrictions)
        made.original_restrictions, made._modified_restrictions = list(made.restrictions), list(made.restrictions)
        made.build_neighbors_index, made.neighbor_method, made.neighbors_index = False, None, {}
        made.solver_method = "PC_OptimizedBacktrackingSolver"
        made._name_parameters()
        made._take(space)
        made._finish()
        return made

    # -- building ---------------------------------------------------------------------------------------------------

    def _name_parameters(self):
        self.param_names = list(self.tune_params)
        self.params_values = tuple(tuple(plain(v) for v in values) for values in self.tune_params.values())
        self.num_params = len(self.param_names)
        self._position_of = [{value: i for i, value in reversed(list(enumerate(values)))} for values in self.params_values]
        self.tune_param_is_numeric = {
            name: all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
            for name, values in zip(self.param_names, self.params_values)}
        self.tune_param_is_numeric_mask = np.array(list(self.tune_param_is_numeric.values()), dtype=bool)

    def _build(self):
        problem = _core.Problem("space")
        for name, values in zip(self.param_names, self.params_values):
            problem.add_parameter(name, values)
        add_restrictions(problem, self.restrictions, self.param_names)
        blocks = [name for name in self.block_size_names if name in self.param_names]
        if blocks:
            most = f"{' * '.join(blocks)} <= {self.max_threads}"
            problem.restrict(most)
            if most not in self._modified_restrictions:
                self._modified_restrictions.append(most)
        self._take(_core.SearchSpace(problem))

    def _take(self, space):
        """Configurations of a native space as tuples; columns, since that is quickest."""
        positions = space.positions()
        names = space.parameter_names
        columns = []
        for name in self.param_names:
            values = space.values(name)
            columns.append([values[i] for i in positions[:, names.index(name)].tolist()])
        self.list = list(zip(*columns))

    def _finish(self):
        self.size = len(self.list)
        self.indices = np.arange(self.size)
        self._index_of = dict(zip(self.list, range(self.size)))
        self._positions = self._numpy = self._numeric = self._true = None
        self._found = {method: {} for method in supported_neighbor_methods}

    # -- the list, in other dresses ---------------------------------------------------------------------------------

    def sorted_list(self, sort_last_param_first=False):
        """The configurations ordered by the positions of their values, first (or last) parameter first."""
        def key(configuration):
            positions = self.get_param_indices(configuration)
            return tuple(reversed(positions)) if sort_last_param_first else positions

        return sorted(self.list, key=key)

    def get_list_dict(self):
        """Configurations to their indices."""
        return self._index_of

    def get_list_numpy(self):
        """The list as a structured array, a field per parameter."""
        if self._numpy is None:
            types = [(name, np.array(values).dtype) for name, values in zip(self.param_names, self.params_values)]
            self._numpy = np.array(self.list, dtype=types)
        return self._numpy

    def get_list_param_indices_numpy(self):
        """Positions of the values, shape (size, parameters); of a signed type in which differences fit."""
        if self._positions is None:
            columns = [[position[v] for v in column] for position, column in zip(self._position_of, zip(*self.list))]
            largest = 2 * max((len(values) for values in self.params_values), default=1)
            kind = next(t for t in (np.int8, np.int16, np.int32) if largest < np.iinfo(t).max)
            self._positions = np.array(columns, dtype=kind).reshape(self.num_params, -1).T.copy()
        return self._positions

    def get_list_param_indices_numpy_min(self):
        """The smallest number that the type of :meth:`get_list_param_indices_numpy` holds."""
        return np.iinfo(self.get_list_param_indices_numpy().dtype).min

    def get_list_param_indices_numpy_max(self):
        """The largest."""
        return np.iinfo(self.get_list_param_indices_numpy().dtype).max

    def get_param_indices_lower_bounds(self):
        """The smallest position of each parameter that is left by the restrictions."""
        return self.get_list_param_indices_numpy().min(axis=0)

    def get_param_indices_upper_bounds(self):
        """The largest."""
        return self.get_list_param_indices_numpy().max(axis=0)

    def get_list_numpy_numeric(self):
        """Shape (size, parameters): values where they are numbers, else their positions."""
        if self._numeric is None:
            columns = [self.get_list_numpy()[name] if numeric else self.get_list_param_indices_numpy()[:, i]
                       for i, (name, numeric) in enumerate(self.tune_param_is_numeric.items())]
            self._numeric = np.array(columns).transpose()
        return self._numeric

    def get_true_tunable_params(self):
        """The parameters that have more than one value left."""
        if self._true is None:
            differs = np.ptp(self.get_list_param_indices_numpy(), axis=0) > 0
            self._true = {name: self.tune_params[name] for name, several in zip(self.param_names, differs) if several}
        return self._true

    # -- looking up -------------------------------------------------------------------------------------------------

    def is_param_config_valid(self, param_config):
        """Whether it is in the space."""
        return self.get_param_config_index(param_config) is not None

    def get_param_config_index(self, param_config):
        """Its index, or None."""
        return self._index_of.get(param_config)

    def get_param_configs_at_indices(self, indices):
        """The configurations at these indices."""
        return [self.list[i] for i in indices]

    def get_param_indices(self, param_config):
        """The position of each value in its parameter's list. Raises ValueError for a value that is not there."""
        try:
            return tuple([position[value] for position, value in zip(self._position_of, param_config)])
        except KeyError:
            value, values = next((v, vs) for v, vs in zip(param_config, self.params_values) if v not in vs)
            raise ValueError(f"Parameter value {value} ({type(value)}) is not in the list of values {values}") from None

    def get_param_config_from_param_indices(self, param_indices):
        """The values at these positions."""
        return tuple([values[i] for values, i in zip(self.params_values, param_indices)])

    def get_param_config_from_numeric(self, param_config):
        """Values from a row of :meth:`get_list_numpy_numeric`."""
        if self.tune_param_is_numeric_mask.all():
            return tuple(param_config.tolist()) if isinstance(param_config, np.ndarray) else param_config
        return tuple(plain(v) if numeric else values[int(v)]
                     for v, numeric, values in zip(param_config, self.tune_param_is_numeric_mask, self.params_values))

    # -- samples ----------------------------------------------------------------------------------------------------

    def get_random_sample_indices(self, num_samples):
        """Different indices (an array). Raises ValueError where there are not so many."""
        if num_samples > self.size:
            raise ValueError(f"The number of samples requested ({num_samples}) is greater than the searchspace size ({self.size})")
        return np.random.choice(self.indices, size=num_samples, replace=False)

    def get_random_sample(self, num_samples):
        """Different configurations; all where there are not so many, with a warning."""
        return self.get_param_configs_at_indices(self.get_random_sample_indices(self._at_most(num_samples)))

    def _at_most(self, count):
        if count > self.size:
            warn(f"Too many samples requested ({count}), reducing the number of samples to the searchspace size ({self.size})",
                 stacklevel=3)
        return min(count, self.size)

    def get_LHS_sample_indices(self, num_samples):
        """Different indices, spread over the parameters as a Latin hypercube."""
        count = self._at_most(num_samples)
        low, high = self.get_param_indices_lower_bounds(), self.get_param_indices_upper_bounds()
        strata = np.array([np.random.permutation(count) for _ in range(self.num_params)]).T
        wanted = low + np.floor((strata + np.random.random(strata.shape)) / max(count, 1) * (high - low + 1)).astype(int)
        return self._nearest_to(wanted, count)

    def get_LHS_sample(self, num_samples):
        """Configurations of :meth:`get_LHS_sample_indices`."""
        return self.get_param_configs_at_indices(self.get_LHS_sample_indices(num_samples))

    def get_distributed_random_sample_indices(self, num_samples, sampling_factor=10):
        """Different indices, spread over the space: each the nearest to one of the points of a lattice that gets finer.
        ``sampling_factor`` (how many are drawn to choose from there) has no effect."""
        count = self._at_most(num_samples)
        sizes = np.array([len(values) for values in self.params_values])
        # an additive recurrence with the generalised golden ratio (Roberts, 2018) from a random start
        ratio = 1.0
        for _ in range(64):
            ratio = (1 + ratio) ** (1 / (self.num_params + 1))
        steps = ratio ** -np.arange(1, self.num_params + 1)
        points = (np.random.random(self.num_params) + np.outer(np.arange(count), steps)) % 1
        return self._nearest_to(np.floor(points * sizes).astype(int), count)

    def get_distributed_random_sample(self, num_samples, sampling_factor=10):
        """Configurations of :meth:`get_distributed_random_sample_indices`."""
        return self.get_param_configs_at_indices(self.get_distributed_random_sample_indices(num_samples, sampling_factor))

    def _nearest_to(self, positions, count):
        """Indices nearest to points given by positions; where two points have the same, random ones instead."""
        found = dict.fromkeys(int(self._distances(point).argmin()) for point in positions)
        for index in np.random.permutation(self.size):
            if len(found) >= count:
                break
            found.setdefault(int(index))
        return list(found)

    # -- neighbours -------------------------------------------------------------------------------------------------

    def get_neighbors(self, param_config, neighbor_method=None, build_full_cache=False):
        """Neighbours of a configuration, which need not be in the space. Methods:

        strictly-adjacent: every value at most one position away; adjacent: no further than the nearest other value that
        the space has in each direction; Hamming: one value differs; Hamming-adjacent: one, and by the nearest that there is;
        closest-param-indices: those with the smallest sum of differences in position.
        """
        return self.get_param_configs_at_indices(self.get_neighbors_indices(param_config, neighbor_method, build_full_cache))

    def get_neighbors_no_cache(self, param_config, neighbor_method=None):
        """The same, worked out again."""
        return self.get_param_configs_at_indices(self.get_neighbors_indices_no_cache(param_config, neighbor_method))

    def get_neighbors_indices(self, param_config, neighbor_method=None, build_full_cache=False):
        """Their indices, kept for the next time."""
        found = self._found[self._method(neighbor_method)]
        if param_config not in found:
            found[param_config] = self.get_neighbors_indices_no_cache(param_config, neighbor_method, build_full_cache)
        return found[param_config]

    def get_neighbors_indices_no_cache(self, param_config, neighbor_method=None, build_full_cache=False):
        """Their indices, worked out again unless all of them are known."""
        method = self._method(neighbor_method)
        index = self.get_param_config_index(param_config)
        if build_full_cache and method not in self.neighbors_index:
            self.neighbors_index[method] = [self._find_neighbors(c, i, method) for i, c in enumerate(self.list)]
        if index is not None and method in self.neighbors_index:
            return self.neighbors_index[method][index]
        return self._find_neighbors(param_config, index, method)

    def are_neighbors_indices_cached(self, param_config, neighbor_method=None):
        """Whether they are known."""
        return param_config in self._found[self._method(neighbor_method)]

    def get_partial_neighbors_indices(self, param_config, neighbor_method=None):
        """Those of its neighbours that are known already."""
        return self.get_param_configs_at_indices(self._found[self._method(neighbor_method)].get(param_config, []))

    def pop_random_partial_neighbor(self, param_config, neighbor_method=None, threshold=2):
        """One of the known neighbours, or None where fewer than ``threshold`` are known. None is taken away here."""
        known = self.get_partial_neighbors_indices(param_config, neighbor_method)
        return choice(known) if len(known) >= max(threshold, 1) else None

    def get_random_neighbor(self, param_config, neighbor_method=None, use_partial_cache=True):
        """One of its neighbours, or None."""
        neighbors = self.get_neighbors(param_config, neighbor_method)
        return choice(neighbors) if neighbors else None

    def get_param_neighbors(self, param_config, index, neighbor_method, randomize):
        """The other values that its neighbours have for parameter ``index``."""
        values = list({n[index] for n in self.get_neighbors(param_config, neighbor_method)} - {param_config[index]})
        if randomize:
            shuffle(values)
        return values

    def order_param_configs(self, param_configs, order, randomize_in_params=True):
        """Configurations ordered by the first parameter of ``order`` in which they differ from one of them."""
        if len(order) != self.num_params:
            raise ValueError(f"The length of the order ({len(order)}) must be equal to the number of parameters ({self.num_params})")
        for i in range(self.num_params):
            if i not in order:
                raise ValueError(f"order needs to be a list of the parameter indices, but index {i} is missing")
        base = choice(param_configs)
        ordered, left = [base], [c for c in param_configs if c != base]
        for parameter in order:
            differing = [c for c in left if c[parameter] != base[parameter]]
            left = [c for c in left if c[parameter] == base[parameter]]
            if randomize_in_params:
                shuffle(differing)
            ordered += differing
        if len(ordered) != len(param_configs):
            raise ValueError(f"The number of ordered parameter configurations ({len(ordered)}) differs from the original number "
                             f"of parameter configurations ({len(param_configs)}): some are there twice")
        return ordered

    def _method(self, neighbor_method):
        method = neighbor_method or self.neighbor_method
        if method is None:
            raise ValueError("Neither the neighbor_method argument nor self.neighbor_method was set")
        if method not in supported_neighbor_methods:
            raise ValueError(f"The neighbor method {method} is not in {supported_neighbor_methods}")
        return method

    def _distances(self, point):
        return np.abs(self.get_list_param_indices_numpy().astype(np.int64) - point).sum(axis=1)

    def _find_neighbors(self, param_config, index, method):
        here = np.array(self.get_param_indices(param_config))
        difference = self.get_list_param_indices_numpy() - here
        if method == "Hamming":
            chosen = np.count_nonzero(difference, axis=1) == 1
        elif method == "strictly-adjacent":
            chosen = np.abs(difference).max(axis=1) <= 1
        elif method == "adjacent":
            chosen = _within_nearest(difference, difference)
        elif method == "Hamming-adjacent":
            one = np.count_nonzero(difference, axis=1) == 1
            chosen = one & _within_nearest(difference, difference[one])
        else:
            distances = np.abs(difference).sum(axis=1)
            if index is not None:
                distances[index] = np.iinfo(distances.dtype).max
            chosen = distances == distances.min()
        if index is not None:
            chosen[index] = False
        return np.nonzero(chosen)[0]

    # -- what needs other packages ----------------------------------------------------------------------------------

    def __getattr__(self, name):
        if name in _INSTEAD:
            raise NotSupported(f"Searchspace.{name} is not supported by ergotune: {_INSTEAD[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_TENSORS = "use torch.tensor(searchspace.get_list_numpy_numeric())"
_INSTEAD = {
    **dict.fromkeys(("initialize_tensorspace", "has_tensorspace", "get_tensorspace", "get_tensorspace_categorical_dimensions",
                     "param_config_to_tensor", "tensor_to_param_config", "get_tensorspace_bounds"), _TENSORS),
    "get_tune_params_pyatf": "ergotune has pyATF's techniques as strategy \"bandit\"",
    "to_ax_searchspace": "Kernel Tuner has not finished it either; give searchspace.list to Ax",
}


def _within_nearest(difference, among):
    """Rows in which no value is further than the nearest other value that ``among`` has in each direction."""
    far = np.iinfo(np.int64).max
    above = np.where(among > 0, among, far).min(axis=0, initial=far)
    below = np.where(among < 0, among, -far).max(axis=0, initial=-far)
    return ((difference <= above) & (difference >= below)).all(axis=1)


def _check_ways(defer_construction, framework, solver_method, path_to_ATF_cache):
    if defer_construction:
        raise NotSupported("Searchspace(defer_construction=True) is not supported by ergotune: make it when it is wanted")
    if path_to_ATF_cache is not None:
        raise NotSupported("Searchspace(path_to_ATF_cache=...) is not supported by ergotune: give from_cache=util.read_cache(file)")
    if framework.lower() not in _FRAMEWORKS:
        raise ValueError(f"Invalid framework parameter {framework}")
    if solver_method.lower() not in _SOLVERS:
        raise ValueError(f"Solver method {solver_method} not recognized.")
