"""A plan: the regret of each policy at each epsilon, and the conclusions from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from dpbandits.bounds import Bound, Problem, for_policy
from dpbandits.display import bars, card, shortened, sparkline
from dpbandits.errors import InputError
from dpbandits.formats import amount
from dpbandits.planning.grid import LeftOut, Outcome
from dpbandits.planning.knowing import Knowing
from dpbandits.planning.question import Question
from dpbandits.privacy.guarantee import FROM_LOG, Guarantee

__all__ = ["BudgetAnswer", "Plan", "lower_bound"]

HARDLY, LITTLE = 0.9, 0.8  # shares of what random play loses


@dataclass(frozen=True)
class BudgetAnswer:
    """The outcome at the smallest epsilon found at which the upper end of a policy's interval meets the budget."""

    trust: str
    outcome: Outcome | None  # None if no policy meets the budget


@dataclass(frozen=True, repr=False)
class Plan:
    """All simulations for a question, and the answers."""

    question: Question
    outcomes: list[Outcome]
    left_out: list[LeftOut]
    budgets: list[BudgetAnswer]
    all_share: list[Outcome]  # the best policies, simulated without refusals
    unprotected: dict[str, Outcome] = field(default_factory=dict)  # by trust: the best policy without privacy
    knowing: dict[str, Knowing] = field(default_factory=dict)  # by trust: the shortest test that knows the best arm

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        if len(self.question.epsilons) == 1:
            found = [self.best(self.focus, trust) for trust in self.question.trusts]
            losses = [outcome.regret for outcome in (*found, self.free) if outcome is not None]
            return card(self._lines(), bars(losses), "losses of these policies, in this order")
        best = [self.best(epsilon) for epsilon in self.question.epsilons]
        curve = [math.nan if outcome is None else outcome.regret for outcome in best]
        return card(
            self._lines(),
            sparkline(curve, [math.log(epsilon) for epsilon in self.question.epsilons]),
            "loss over log epsilon",
        )

    @property
    def runs_in_words(self) -> str:
        """How many runs the policies got, in words: those that may be the best get more than others."""
        runs = [outcome.runs for outcome in self.outcomes]
        few, many = min(runs, default=0), max(runs, default=0)
        return f"{few:,} to {many:,} runs" if few < many else f"{many:,} runs"

    def _lines(self) -> list[str]:
        """The best policies at the epsilon of the answers."""
        asked = self.question
        about = f"{shortened(asked.arms.text, 40)}, {asked.horizon:,} rounds, epsilon {self.focus:g}"
        lines = [f"Plan: {about}; {self.runs_in_words}, seed {asked.seed}"]
        found = [(trust, self.best(self.focus, trust)) for trust in asked.trusts]
        for words, outcome in [*found, ("without privacy", self.free)]:
            if outcome is not None:
                share = asked.loss(outcome.regret)
                loss = "" if share is None else f" ({100 * share:.2g} % of what the best arm pays)"
                lines.append(f"  {words}: {outcome.label} loses {amount(outcome.regret)}{loss}")
        return [*lines, f"  no promise: {FROM_LOG}"] if asked.arms.from_log else lines

    @property
    def focus(self) -> float:
        """The epsilon of the answers: the one asked for, else the smallest within the budget, else the middle one."""
        if self.question.epsilon is not None:
            return self.question.epsilon
        kept = [budget.outcome.epsilon for budget in self.budgets if budget.outcome is not None]
        if kept:
            least = min(epsilon for epsilon in kept if epsilon is not None)
            return min(epsilon for epsilon in self.question.epsilons if epsilon >= least)
        return self.question.epsilons[len(self.question.epsilons) // 2]

    def at(self, epsilon: float, trust: str | None = None) -> list[Outcome]:
        """The private outcomes at an epsilon, best first: by caution, the upper end of the interval, and the regret."""
        found = [o for o in self.outcomes if o.epsilon == epsilon and trust in (None, o.trust)]
        return sorted(found, key=lambda outcome: (bool(outcome.caution), outcome.interval[1], outcome.regret))

    def best(self, epsilon: float, trust: str | None = None) -> Outcome | None:
        """The best private outcome at an epsilon."""
        return next(iter(self.at(epsilon, trust)), None)

    @cached_property
    def free(self) -> Outcome | None:
        """The best non-private policy."""
        free = (outcome for outcome in self.outcomes if outcome.epsilon is None)
        return min(free, key=lambda outcome: outcome.interval[1], default=None)

    @property
    def advised(self) -> Outcome | None:
        """The best private outcome at the epsilon of the answers, in any of the trust models asked about."""
        return self.best(self.focus)

    def privacy_cost(self, trust: str) -> float | None:
        """What privacy costs the best policy: its regret, less that of the same policy without privacy."""
        best, same = self.best(self.focus, trust), self.unprotected.get(trust)
        return None if best is None or same is None else best.regret - same.regret

    @property
    def nobody_learns(self) -> bool:
        """Whether even the best policy without privacy loses practically what random play loses."""
        return self.free is not None and self.free.regret > HARDLY * self.question.at_random

    def useless(self, outcome: Outcome) -> bool:
        """Whether a policy loses practically what random play loses."""
        return outcome.regret > LITTLE * self.question.at_random

    @cached_property
    def regimes(self) -> tuple[float, float] | None:
        """The epsilons at which the two terms of Theorem 3 of Azize & Basu 2022 are equal: 6 epsilon t_inf = d_inf.

        The result is the smallest and the largest of them over the arms. Below both, privacy sets the lower bound,
        which grows as 1/epsilon. Above both, it is the bound without privacy.
        """
        asked = _problem(self.question, 1.0)
        if asked is None or (asked.family != "normal" and asked.best >= 1.0):
            return None
        crossings = [asked.kl_gap(arm) / (6.0 * asked.tv_gap(arm)) for arm in asked.worse]
        return min(crossings), max(crossings)

    def lower(self, epsilon: float, trust: str) -> Bound | None:
        """The largest proven asymptotic lower bound; None if regret cannot be that large at this horizon."""
        return lower_bound(self.question, epsilon, trust)

    @property
    def kept(self) -> bool:
        """Whether some policy meets the budget, or no budget was set."""
        return not self.budgets or any(budget.outcome is not None for budget in self.budgets)


def _problem(question: Question, epsilon: float) -> Problem | None:
    """The problem as the theorems state it; None if no theorem covers these arms."""
    try:
        return Problem.on(question.arms, question.told, epsilon=epsilon, reward_range=question.reward_range)
    except InputError:
        return None


def lower_bound(question: Question, epsilon: float, trust: str) -> Bound | None:
    """The largest proven asymptotic lower bound; None if regret cannot be that large at this horizon."""
    asked = _problem(question, epsilon)
    if asked is None:
        return None
    promise = Guarantee.central(epsilon) if trust == "central" else Guarantee.local(epsilon)
    lowers = [bound for bound in for_policy(asked, "", promise) if bound.kind == "lower" and bound.checked]
    largest = max(lowers, key=lambda bound: bound.value or 0.0, default=None)
    return None if largest is None or (largest.rate or 0.0) * math.log(question.told) > question.at_random else largest
