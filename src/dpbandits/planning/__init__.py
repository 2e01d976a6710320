"""Which policy, which epsilon, and what will it cost: the advisor."""

from dpbandits.planning.levels import LevelCurve, plan_levels
from dpbandits.planning.plan import Plan, plan
from dpbandits.planning.question import Question, ask

__all__ = ["LevelCurve", "Plan", "Question", "ask", "plan", "plan_levels"]
