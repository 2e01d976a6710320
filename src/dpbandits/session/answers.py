"""What passes between a session and its users: decisions, and the responses of devices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits.errors import InputError
from dpbandits.exact import as_float
from dpbandits.exact.wire import encode
from dpbandits.numerics import unit
from dpbandits.protocols import Curator

__all__ = ["Decision", "Response", "SessionDevice", "Winner", "as_level", "as_number", "number_of"]


class Decision(NamedTuple):
    """Which arm to play for one user. ``arm`` is its name where the arms have names, and its number otherwise.

    ``propensity`` is the probability with which the policy chose this arm, given everything that it had been told. It
    is 1 for a policy that does not choose at random. For one that does, it is None unless the session computes
    propensities and knows how.
    """

    id: str
    arm: Any
    number: int  # of the arm
    propensity: float | None = 1.0
    counts: bool = True  # whether its reward is taken: with rewards_per_user a user's first ones are


class Winner(NamedTuple):
    """The arm that is known to be the best. The probability that it is not is at most 1 - ``confidence``."""

    arm: Any
    rounds: int  # decisions that were made before it was known
    confidence: float


class Response(NamedTuple):
    """What a user's device sends in the local model: a private number, and never the reward itself."""

    decision: str
    epsilon: Fraction
    value: float
    steps: int  # the value is a multiple of 1/steps where the noise is exact
    exact: bool

    def to_bytes(self) -> bytes:
        """The bytes that leave the device, as those of ``dpbandits.client``."""
        if not self.exact:
            raise InputError("response", "must be made with exact noise to leave a device, got simulated noise")
        return encode(self.decision, self.epsilon, round(self.value * self.steps))


class SessionDevice:
    """The curator on one user's device: it makes the private response to a decision, from the reward.

    In a deployment this is ``dpbandits.client`` or ``clients/js``, which also keep the budget and every response.
    """

    def __init__(
        self,
        curator: Curator,
        epsilon: Fraction,
        noise: Any,
        *,
        exact: bool,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        self._epsilon, self._level = epsilon, float(epsilon)
        self._curator, self._noise, self._exact, self._range = curator, noise, exact, reward_range

    @property
    def epsilon(self) -> Fraction:
        """The level of the noise. It cannot be changed."""
        return self._epsilon

    def respond(self, decision: Decision, reward: float) -> Response:
        """The response to send. Call it once for a reward: every call costs epsilon.

        A reward that is not a number is answered like the lowest reward: an error would leave the decision unanswered,
        and the silence would reveal it. A decision that does not count is refused: its user is over the cap.
        """
        if not isinstance(decision, Decision):  # it may be the reward, which is not shown
            raise InputError("decision", f"must be one that ask returned, got a {type(decision).__name__}")
        if not decision.counts:
            raise InputError("decision", f"must be one whose reward is taken; {decision.id} is over rewards_per_user")
        value = as_float(reward)
        if self._range is not None:
            low, high = self._range
            value = unit((value - low) / (high - low))
        value = float(self._curator.respond(value, self._level, self._noise))
        return Response(decision.id, self._epsilon, value, self._curator.steps, self._exact)


def number_of(decision: Decision | str) -> str:
    """The number of a decision, as text. A value that is no number is not shown: it may be the reward."""
    name = decision.id if isinstance(decision, Decision) else decision
    if not isinstance(name, str) or not name.isdecimal() or len(name) > 20:
        kind = type(decision).__name__
        raise InputError("decision", f"must be one that ask returned, or its id, got a {kind} that is neither")
    return name


def as_level(epsilon: Fraction) -> float:
    """The level of a response as a number."""
    try:
        numerator, denominator = epsilon.as_integer_ratio()
        return numerator / denominator  # quicker than float(epsilon)
    except OverflowError:
        raise InputError("response", "must be made at an epsilon below 1e308; this is not") from None


def as_number(reward: Any) -> float:
    """A reward as a number. A refusal does not show it: it is private."""
    try:
        return float(reward)
    except (OverflowError, TypeError, ValueError):
        raise InputError("reward", "must be a number; this is not one") from None
