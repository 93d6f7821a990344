"""Your own optimisation algorithms: a class with ``__call__(func, searchspace)``, wrapped as a strategy."""

from abc import ABC, abstractmethod

from .. import util
from .common import CostFunc


class OptAlg(ABC):
    """Base of such an algorithm."""

    def __init__(self):
        self.costfunc_kwargs = {"scaling": False, "snap": False}

    @abstractmethod
    def __call__(self, func, searchspace):
        """Minimises ``func`` (a :class:`CostFunc`; ``func.budget_spent_fraction`` is 1 when it is to end) over
        ``searchspace``; gives the best configuration and its cost."""


class OptAlgWrapper:
    """Such an algorithm as a strategy: ``tune_kernel(..., strategy=OptAlgWrapper(MyAlgorithm()))``."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def tune(self, searchspace, runner, tuning_options):
        """Runs it until it ends or the budget is spent; gives the rows."""
        if not hasattr(self.optimizer, "costfunc_kwargs"):
            self.optimizer.costfunc_kwargs = {"scaling": False, "snap": False}
        cost = CostFunc(searchspace, tuning_options, runner, **self.optimizer.costfunc_kwargs)
        if self.optimizer.costfunc_kwargs.get("scaling", False):
            cost.get_bounds_x0_eps()  # sets tuning_options["eps"]
        try:
            self.optimizer(cost, searchspace)
        except util.StopCriterionReached as reached:
            if tuning_options["verbose"]:
                print(reached)
        return cost.results
