"""Ask and tell: one policy live."""

from dpbandits.session.answers import Decision, Response, SessionDevice, Winner
from dpbandits.session.facts import EXACT_NOISE
from dpbandits.session.session import Session

__all__ = ["EXACT_NOISE", "Decision", "Response", "Session", "SessionDevice", "Winner"]
