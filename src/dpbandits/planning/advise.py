"""Make a plan: simulate the suitable policies, and find the smallest epsilon that meets the budget."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

from dpbandits.checks import nearest, workers_of
from dpbandits.errors import InputError
from dpbandits.planning.grid import Outcome, enough_runs, play, play_all, without_privacy
from dpbandits.planning.knowing import know
from dpbandits.planning.plan import BudgetAnswer, Plan
from dpbandits.planning.question import Question, ask
from dpbandits.simulation.driver import Counted

__all__ = ["make_plan", "plan"]

HALVINGS = 5  # bisection steps between two epsilons, to find the smallest that meets the budget


def plan(arms: object, *, progress: Counted | None = None, workers: int | None = None, **given: Any) -> Plan:
    """Make a plan. The keywords are those of ``question.ask``.

    >>> found = plan("0.9,0.6", horizon=10_000, epsilon=1, runs=4, policies=["adap-klucb", "ldp-ucb-b"])
    >>> found.best(1.0, "central").policy, found.best(1.0, "local").policy, found.free.policy
    ('adap-klucb', 'ldp-ucb-b', 'imed')
    """
    threads = None if workers is None else workers_of(workers)
    allowed = list(inspect.signature(ask).parameters)[1:]
    for name in given:
        if name not in allowed:
            raise InputError(name, f"is not a parameter of plan: {nearest(name, [*allowed, 'workers', 'progress'])}")
    return make_plan(ask(arms, **given), progress, threads)


def make_plan(question: Question, progress: Counted | None = None, workers: int | None = None) -> Plan:
    """Simulate all suitable policies, then find the smallest epsilon that meets the budget."""
    outcomes, left_out = play_all(question, progress, workers)
    made = Plan(question, outcomes, left_out, [], [])
    budgets = [_within_budget(made, trust, workers) for trust in question.trusts] if question.budget else []
    made = Plan(question, outcomes, left_out, budgets, [])
    best = [one for one in (made.best(made.focus, trust) for trust in question.trusts) if one is not None]
    same = {one.trust: without_privacy(question, one, workers) for one in best}
    sharing = []
    if question.refuse:
        sharing = [play(question, one.candidate, one.epsilon, Fraction(0), workers, one.runs) for one in best]
    tests = {trust: know(question, trust, made.focus, workers) for trust in question.trusts}
    knowing = {trust: one for trust, one in tests.items() if one is not None}
    return Plan(question, outcomes, left_out, budgets, sharing, same, knowing)


def _within_budget(made: Plan, trust: str, workers: int | None) -> BudgetAnswer:
    """Find the smallest epsilon that meets the budget: first on the curve, then by bisection with the policy found."""
    question = made.question
    budget = question.budget or 0.0
    kept: Outcome | None = None
    too_small = 0.0
    for epsilon in question.epsilons:
        keeping = [one for one in made.at(epsilon, trust) if one.interval[1] <= budget and not one.caution]
        if keeping:
            kept = keeping[0]
            break
        too_small = epsilon
    if kept is None or kept.epsilon is None or too_small == 0.0:
        return BudgetAnswer(trust, kept)
    high = kept.epsilon
    for _ in range(HALVINGS):
        middle = float(f"{math.sqrt(too_small * high):.3g}")
        if not too_small < middle < high:
            break
        runs = enough_runs(question, kept)
        trial = play(question, kept.candidate, middle, question.refuse, workers, runs)
        if trial.interval[1] <= budget:
            kept, high = trial, middle
        else:
            too_small = middle
    return BudgetAnswer(trust, kept)
