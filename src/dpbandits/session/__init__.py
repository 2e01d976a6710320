"""Ask and tell: one policy live."""

from dpbandits.session.answers import Decision, Response, SessionDevice, Winner
from dpbandits.session.session import EXACT_NOISE, Session

__all__ = ["EXACT_NOISE", "Decision", "Response", "Session", "SessionDevice", "Winner"]
