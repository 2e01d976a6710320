"""Theorems as functions: lower and upper bounds on regret, each with its source and what must hold."""

from dpbandits.bounds.bound import Bound, DoesNotHold, Theorem
from dpbandits.bounds.catalogue import applicable, evaluate, for_policy, read_options, report, theorem_named, theorems
from dpbandits.bounds.divergences import Law
from dpbandits.bounds.levels import ClippedNormal, Levels, best_epsilon_min, level_cost, level_curve
from dpbandits.bounds.problem import LinearProblem, Problem

__all__ = [
    "Bound",
    "ClippedNormal",
    "DoesNotHold",
    "Law",
    "Levels",
    "LinearProblem",
    "Problem",
    "Theorem",
    "applicable",
    "best_epsilon_min",
    "evaluate",
    "for_policy",
    "level_cost",
    "level_curve",
    "read_options",
    "report",
    "theorem_named",
    "theorems",
]
