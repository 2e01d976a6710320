"""A plan as one JSON document."""

from __future__ import annotations

from typing import Any

from dpbandits import __version__
from dpbandits.planning.grid import Outcome
from dpbandits.planning.plan import Plan
from dpbandits.planning.question import Question
from dpbandits.planning.words import answers
from dpbandits.privacy.guarantee import FROM_LOG, ONE_REWARD
from dpbandits.privacy.users import ONE_USER

__all__ = ["document"]


def document(plan: Plan) -> dict[str, Any]:
    """The document that ``dpbandits plan --json`` prints."""
    asked = plan.question
    return {
        "question": asked.to_json(),
        "answers": answers(plan),
        "epsilon": plan.focus,
        "promise_for": ONE_REWARD if asked.rewards_per_user is None else ONE_USER,
        "advised": _json(plan.advised, asked),
        "best": {t: _json(plan.best(plan.focus, t), asked) for t in asked.trusts},
        "privacy_cost": {t: plan.privacy_cost(t) for t in asked.trusts},
        "unprotected": {t: _json(plan.unprotected.get(t), asked) for t in asked.trusts},
        "without_privacy": _json(plan.free, asked),
        "at_random": {"regret": asked.at_random, "loss": asked.loss(asked.at_random)},
        "nobody_learns": plan.nobody_learns,
        "interval": "95 %: Student's lower end, empirical Bernstein upper end (Maurer & Pontil 2009), for heavy tails",
        "outcomes": [outcome.to_json(asked) for outcome in plan.outcomes],
        "budget": [{"trust": budget.trust, "kept_by": _json(budget.outcome, asked)} for budget in plan.budgets],
        "all_share": [outcome.to_json(asked) for outcome in plan.all_share],
        "to_know": {t: one.to_json() for t, one in plan.knowing.items()},
        "left_out": [{"policy": o.policy, "epsilon": o.epsilon, "reason": o.reason} for o in plan.left_out],
        **({"promise": f"none: {FROM_LOG}"} if asked.arms.from_log else {}),
        "version": __version__,
    }


def _json(outcome: Outcome | None, question: Question) -> dict[str, Any] | None:
    return None if outcome is None else outcome.to_json(question)
