"""ergotune's strategies inside an Optuna study, and a study as prior of a tuning run. Needs the package ``optuna``.

    study = optuna.create_study(sampler=ErgotuneSampler(problem))
    study.optimize(objective, n_trials=50)
"""

from __future__ import annotations

import contextlib
import csv
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Union

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _CONSTRAINTS_KEY, _process_constraints_after_trial
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from . import _core
from ._core import Problem, SearchSpace

Space = Union[Problem, SearchSpace, Mapping[str, Sequence[Any]]]


def _space_of(given: Space) -> SearchSpace:
    if isinstance(given, SearchSpace):
        return given
    if isinstance(given, Mapping):
        problem = Problem("study")
        for name, values in given.items():
            problem.add_parameter(name, list(values))
        given = problem
    return SearchSpace(given)


class ErgotuneSampler(BaseSampler):
    """Values of parameters by a strategy of ergotune, which never leaves the restrictions of its space.

    Args:
        space: a :class:`ergotune.Problem` (parameters and restrictions), a :class:`ergotune.SearchSpace`, or a dict of values by
            parameter. What a trial suggests beside them is drawn at random.
        strategy: any of :func:`ergotune.strategies`.
        seed: of the strategy.
        budget: how many trials the study is to have (``n_trials``), where the strategy should plan for it.
        options: the strategy's options.
        constraints_func: as other samplers have it: a trial is feasible where none of the values is above 0. Others count as
            failed. Trials with constraints of their own (``trial.set_constraint``) are treated alike.

    Studies may have several objectives, maximise them, run trials side by side (``n_jobs``) and share their storage. Trials that the
    study has when a trial begins are known to the strategy: with ``study.add_trials(other.trials)`` it starts from another study.
    When every configuration was tried, ``study.optimize`` ends.
    """

    def __init__(self, space: Space, *, strategy: str = "auto", seed: int = 1, budget: int = 0,
                 options: Optional[Mapping[str, Any]] = None,
                 constraints_func: Optional[Callable[[FrozenTrial], Sequence[float]]] = None) -> None:
        self._space = _space_of(space)
        if len(self._space) == 0:
            raise _core.UserError(f"the study's space is empty: {self._space.why_empty()}")
        self._name, self._seed, self._budget, self._options = strategy, seed, budget, dict(options or {})
        self._constraints_func = constraints_func
        self._strategy: Optional[_core.Strategy] = None
        self._told: Set[int] = set()
        self._chosen: Dict[int, Dict[str, Any]] = {}
        self._random = RandomSampler(seed=seed)
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        """Optuna calls it where a study runs in several threads, which share this sampler: the strategy stays one."""
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Dict[str, BaseDistribution]:
        return {}  # the trial's own calls say of which kind each distribution is

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Dict[str, BaseDistribution]) -> Dict[str, Any]:
        return {}

    def sample_independent(self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        if param_name not in self._space.parameter_names:
            return self._random.sample_independent(study, trial, param_name, param_distribution)
        with self._lock:
            if trial.number not in self._chosen:
                self._chosen[trial.number] = self._choose(study, trial)
            value = self._chosen[trial.number][param_name]
        if not param_distribution._contains(param_distribution.to_internal_repr(value)):
            raise _core.UserError(f"the trial suggests {param_name} from {param_distribution}, and the sampler's space has {value!r}: "
                                  "give both the same values")
        return value

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._random.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]) -> None:
        with self._lock:
            self._chosen.pop(trial.number, None)
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)

    def _choose(self, study: Study, trial: FrozenTrial) -> Dict[str, Any]:
        if self._strategy is None:
            self._strategy = _core.Strategy(self._name, self._space, self._seed, self._budget, len(study.directions), self._options)
        self._tell(study)
        fixed = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        if not set(fixed) & set(self._space.parameter_names):
            asked = self._strategy.ask(1)
            if asked:
                return self._space[asked[0]]
            with contextlib.suppress(RuntimeError):  # asked and told by hand: there is nothing to stop
                study.stop()
        # an enqueued trial, or none is left: one that agrees with what is fixed
        for index in self._space.sample(min(len(self._space), 1000), seed=self._seed + trial.number):
            configuration = self._space[index]
            if all(configuration.get(name, value) == value for name, value in fixed.items()):
                return configuration
        return self._space[self._space.sample(1, seed=self._seed + trial.number)[0]]

    def _tell(self, study: Study) -> None:
        """What has ended since, whoever ran it."""
        assert self._strategy is not None
        signs = [-1.0 if direction == StudyDirection.MAXIMIZE else 1.0 for direction in study.directions]
        ended = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        for trial in study.get_trials(deepcopy=False, states=ended):
            if trial.number in self._told:
                continue
            self._told.add(trial.number)
            names = self._space.parameter_names
            if not all(name in trial.params for name in names):
                continue
            index = self._space.index_of({name: trial.params[name] for name in names})
            if index is None:
                continue
            constraints = trial.system_attrs.get(_CONSTRAINTS_KEY) or ()
            if trial.state == TrialState.COMPLETE and trial.values is not None and all(c <= 0 for c in constraints):
                self._strategy.tell(index, [sign * value for sign, value in zip(signs, trial.values)])
            else:
                self._strategy.tell(index, None, ok=False)


def save_study(study: Study, file: Union[str, "os.PathLike[str]"], quantities: Union[str, Sequence[str]] = "time") -> int:
    """Writes a study's completed trials as a recording, to be shown, compared, or given as ``prior=`` of :func:`ergotune.tune`.

    Args:
        study: the study, or a study with several objectives.
        file: the recording, a CSV file (docs/formats.md).
        quantities: what each objective is: a quantity in SI units ("time", "energy") or a metric.

    Returns:
        How many trials it holds: those that completed with the parameters of the first.
    """
    names = [quantities] if isinstance(quantities, str) else list(quantities)
    if len(names) != len(study.directions):
        raise _core.UserError(f"the study has {len(study.directions)} objectives and quantities names {len(names)}")
    trials: List[FrozenTrial] = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    trials = [trial for trial in trials if trial.params and set(trial.params) == set(trials[0].params)]
    if not trials:
        raise _core.UserError("the study has no completed trial with parameters: there is nothing to save")
    parameters = list(trials[0].params)
    with open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*parameters, "status", *names])
        for trial in trials:
            assert trial.values is not None
            writer.writerow([*(trial.params[name] for name in parameters), "ok", *trial.values])
    return len(trials)


__all__ = ["ErgotuneSampler", "save_study"]
