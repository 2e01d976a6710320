"""Lower and upper bounds on regret from the literature, as functions. Each carries its source and its conditions."""

import sys
from types import ModuleType
from typing import Any

from dpbandits.bounds.asked import Bounds, bounds
from dpbandits.bounds.bound import Bound, DoesNotHold, Theorem
from dpbandits.bounds.catalogue import applicable, evaluate, for_policy, read_options, report, theorem_named, theorems
from dpbandits.bounds.divergences import RewardLaw
from dpbandits.bounds.levels import best_epsilon_min, level_cost, level_curve
from dpbandits.bounds.problem import LinearProblem, Problem

__all__ = [
    "Bound",
    "Bounds",
    "DoesNotHold",
    "LinearProblem",
    "Problem",
    "RewardLaw",
    "Theorem",
    "applicable",
    "best_epsilon_min",
    "bounds",
    "evaluate",
    "for_policy",
    "level_cost",
    "level_curve",
    "read_options",
    "report",
    "theorem_named",
    "theorems",
]


class _Callable(ModuleType):
    """This module can be called: ``dp.bounds(...)`` is ``dp.bounds.bounds(...)``."""

    def __call__(self, *args: Any, **given: Any) -> Bounds:
        return bounds(*args, **given)


sys.modules[__name__].__class__ = _Callable
