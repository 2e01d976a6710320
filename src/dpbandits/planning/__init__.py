"""The planner: which policy to use, at which epsilon, and what privacy will cost."""

from dpbandits.planning.advise import plan
from dpbandits.planning.document import document
from dpbandits.planning.levels import LevelCurve, plan_levels
from dpbandits.planning.plan import Plan
from dpbandits.planning.question import Question, ask

__all__ = ["LevelCurve", "Plan", "Question", "ask", "document", "plan", "plan_levels"]
