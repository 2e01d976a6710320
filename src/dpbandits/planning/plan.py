"""A plan: what each policy would lose at each epsilon, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpbandits import __version__
from dpbandits.bounds import Bound, Problem, for_policy
from dpbandits.bounds.text import problem
from dpbandits.errors import InputError
from dpbandits.planning.grid import LeftOut, Outcome, Progress, play, play_all
from dpbandits.planning.question import Question, ask
from dpbandits.privacy.guarantee import Guarantee

__all__ = ["Budget", "Plan", "make", "plan"]

HALVINGS = 5  # of the step between two epsilons, to find the least that keeps a budget


@dataclass(frozen=True)
class Budget:
    """The least epsilon found at which a policy keeps the budget, by the upper end of its interval; or none."""

    trust: str
    outcome: Outcome | None
    lower: Bound | None  # at the largest epsilon asked about
    contradiction: bool  # the budget is below it


@dataclass(frozen=True)
class Plan:
    """Everything that was played for a question, and the answers."""

    question: Question
    outcomes: list[Outcome]
    left_out: list[LeftOut]
    budgets: list[Budget]
    all_share: list[Outcome]  # the best policies where nobody refuses

    @property
    def focus(self) -> float:
        """The epsilon of the curve that the answer is about: the one asked, the least within budget, or the middle."""
        if self.question.epsilon is not None:
            return self.question.epsilon
        kept = [budget.outcome.epsilon for budget in self.budgets if budget.outcome is not None]
        if kept:
            least = min(epsilon for epsilon in kept if epsilon is not None)
            return min(epsilon for epsilon in self.question.epsilons if epsilon >= least)
        return self.question.epsilons[len(self.question.epsilons) // 2]

    def at(self, epsilon: float, trust: str | None = None) -> list[Outcome]:
        """The private outcomes at an epsilon, best first: by the upper end of the interval, lest a lucky few win."""
        found = [o for o in self.outcomes if o.epsilon == epsilon and trust in (None, o.trust)]
        return sorted(found, key=lambda outcome: outcome.interval[1])

    def best(self, epsilon: float, trust: str | None = None) -> Outcome | None:
        """The best policy there."""
        return next(iter(self.at(epsilon, trust)), None)

    @cached_property
    def free(self) -> Outcome | None:
        """The best policy without privacy."""
        return min((o for o in self.outcomes if o.epsilon is None), key=lambda o: o.regret, default=None)

    @cached_property
    def regimes(self) -> tuple[float, float] | None:
        """Where Theorem 3 of Azize & Basu 2022 passes from 6 epsilon t_inf to d_inf: for the first arm and the last.

        Below them privacy sets the lower bound, which grows as 1/epsilon; above them it is the one without privacy.
        """
        asked = _problem(self.question, 1.0)
        if asked is None or (asked.family != "gaussian" and asked.best >= 1.0):
            return None
        crossings = [asked.kl_gap(arm) / (6.0 * asked.tv_gap(arm)) for arm in asked.worse]
        return min(crossings), max(crossings)

    def lower(self, epsilon: float, trust: str) -> Bound | None:
        """The largest proven lower bound, as the horizon grows; None where regret cannot be so large yet."""
        return _lower(self.question, epsilon, trust)

    @cached_property
    def nearly_free(self) -> float | None:
        """The least epsilon of the curve from which on the best policy loses at most twice what ``free`` does."""
        near: float | None = None
        for epsilon in reversed(self.question.epsilons):
            best = self.best(epsilon)
            if self.free is None or best is None or best.regret > 2.0 * self.free.regret:
                break
            near = epsilon
        return near

    @property
    def kept(self) -> bool:
        """Whether some policy keeps the budget, or none was set."""
        return not self.budgets or any(budget.outcome is not None for budget in self.budgets)

    def to_json(self) -> dict[str, Any]:
        """The document that ``dpbandits plan --json`` prints."""
        from dpbandits.planning.words import answers

        free = None if self.free is None else self.free.regret
        asked = self.question
        lowers = [(e, t, self.lower(e, t)) for t in asked.trusts for e in asked.epsilons]
        return {
            "question": asked.to_json(),
            "answers": answers(self),
            "epsilon": self.focus,
            "best": {t: _json(self.best(self.focus, t), asked, free) for t in asked.trusts},
            "without_privacy": _json(self.free, asked, free),
            "at_random": {"regret": asked.at_random, "loss": asked.loss(asked.at_random)},
            "regimes": None if self.regimes is None else list(self.regimes),
            "nearly_free": self.nearly_free,
            "outcomes": [outcome.to_json(asked, free) for outcome in self.outcomes],
            "lower_bounds": [
                {"epsilon": e, "trust": t, "name": bound.name, "value": bound.value} for e, t, bound in lowers if bound
            ],
            "budget": [
                {
                    "trust": budget.trust,
                    "kept_by": _json(budget.outcome, asked, free),
                    "lower_bound": None
                    if budget.lower is None
                    else {"name": budget.lower.name, "value": budget.lower.value, "source": budget.lower.source},
                    "contradiction": budget.contradiction,
                }
                for budget in self.budgets
            ],
            "all_share": [outcome.to_json(asked, free) for outcome in self.all_share],
            "left_out": [{"policy": o.policy, "epsilon": o.epsilon, "reason": o.reason} for o in self.left_out],
            "version": __version__,
        }


def plan(arms: str, *, progress: Progress | None = None, workers: int | None = None, **given: Any) -> Plan:
    """Answer a question: the keywords are those of ``question.ask``.

    >>> found = plan("0.9,0.6", horizon=10_000, epsilon=1, runs=4, policies=["adap-klucb", "ldp-ucb-b"])
    >>> found.best(1.0, "central").policy, found.best(1.0, "local").policy, found.free.policy
    ('adap-klucb', 'ldp-ucb-b', 'imed')
    """
    return make(ask(arms, **given), progress, workers)


def make(question: Question, progress: Progress | None = None, workers: int | None = None) -> Plan:
    """Play everything, then look for the least epsilon within the budget."""
    outcomes, left_out = play_all(question, progress, workers)
    made = Plan(question, outcomes, left_out, [], [])
    budgets = [_within_budget(made, trust, workers) for trust in question.trusts] if question.budget else []
    made = Plan(question, outcomes, left_out, budgets, [])
    if question.refuse == 0:
        return made
    sharing = [
        play(question, best.policy, best.epsilon, Fraction(0), workers)
        for best in (made.best(made.focus, trust) for trust in question.trusts)
        if best is not None
    ]
    return Plan(question, outcomes, left_out, budgets, sharing)


def _within_budget(made: Plan, trust: str, workers: int | None) -> Budget:
    """The least epsilon that keeps the budget: on the curve, then by halving the last step with that policy."""
    question = made.question
    budget = question.budget or 0.0
    lower = _lower(question, question.epsilons[-1], trust)
    below = lower is not None and budget < (lower.value or 0.0)
    kept: Outcome | None = None
    too_small = 0.0
    for epsilon in question.epsilons:
        keeping = [outcome for outcome in made.at(epsilon, trust) if outcome.interval[1] <= budget]
        if keeping:
            kept = keeping[0]
            break
        too_small = epsilon
    if kept is None or kept.epsilon is None or too_small == 0.0:
        return Budget(trust, kept, lower, below)
    high = kept.epsilon
    for _ in range(HALVINGS):
        middle = float(f"{math.sqrt(too_small * high):.3g}")
        if not too_small < middle < high:
            break
        trial = play(question, kept.policy, middle, question.refuse, workers)
        if trial.interval[1] <= budget:
            kept, high = trial, middle
        else:
            too_small = middle
    return Budget(trust, kept, lower, below)


def _problem(question: Question, epsilon: float) -> Problem | None:
    """The problem that theorems are about; None where no theorem speaks about such arms."""
    try:
        return problem(question.arms, question.told, epsilon=epsilon)
    except InputError:
        return None


def _lower(question: Question, epsilon: float, trust: str) -> Bound | None:
    asked = _problem(question, epsilon)
    if asked is None:
        return None
    promise = Guarantee.central(epsilon) if trust == "central" else Guarantee.local(epsilon)
    lowers = [bound for bound in for_policy(asked, "", promise) if bound.kind == "lower" and bound.checked]
    largest = max(lowers, key=lambda bound: bound.value or 0.0, default=None)
    worst = question.horizon * (max(question.means) - min(question.means))
    return None if largest is None or (largest.value or 0.0) > worst else largest


def _json(outcome: Outcome | None, question: Question, free: float | None) -> dict[str, Any] | None:
    return None if outcome is None else outcome.to_json(question, free)
