"""A plan as one JSON document."""

from __future__ import annotations

from typing import Any

from dpbandits import __version__
from dpbandits.planning.grid import Outcome
from dpbandits.planning.plan import Plan
from dpbandits.planning.question import Question
from dpbandits.planning.words import answers
from dpbandits.privacy.guarantee import FROM_LOG

__all__ = ["document"]


def document(plan: Plan) -> dict[str, Any]:
    """The document that ``dpbandits plan --json`` prints."""
    free = None if plan.free is None else plan.free.regret
    asked = plan.question
    lowers = [(e, t, plan.lower(e, t)) for t in asked.trusts for e in asked.epsilons]
    return {
        "question": asked.to_json(),
        "answers": answers(plan),
        "epsilon": plan.focus,
        "best": {t: _json(plan.best(plan.focus, t), asked, free) for t in asked.trusts},
        "without_privacy": _json(plan.free, asked, free),
        "at_random": {"regret": asked.at_random, "loss": asked.loss(asked.at_random)},
        "regimes": None if plan.regimes is None else list(plan.regimes),
        "nearly_free": plan.nearly_free,
        "outcomes": [outcome.to_json(asked, free) for outcome in plan.outcomes],
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
            for budget in plan.budgets
        ],
        "all_share": [outcome.to_json(asked, free) for outcome in plan.all_share],
        "left_out": [{"policy": o.policy, "epsilon": o.epsilon, "reason": o.reason} for o in plan.left_out],
        **({} if asked.arms.log is None else {"promise": f"none: {FROM_LOG}"}),
        "version": __version__,
    }


def _json(outcome: Outcome | None, question: Question, free: float | None) -> dict[str, Any] | None:
    return None if outcome is None else outcome.to_json(question, free)
