"""What a session is told, as the numbers that its policy takes: rewards, responses of devices, and logs of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from dpbandits.environments import Arms
from dpbandits.environments.replay import Log, is_frame, read_log
from dpbandits.errors import InputError
from dpbandits.exact.wire import decode
from dpbandits.live import Live
from dpbandits.numerics import on_grid, unit
from dpbandits.policies.policy import Policy
from dpbandits.session.answers import Response, as_level, as_number
from dpbandits.session.inputs import pairs_of

__all__ = ["Told", "logged"]


class Told:
    """Reads what one session is told. A refusal shows no reward and no response: they are private."""

    __slots__ = ("_live", "_noise", "epsilon", "local", "private", "reward_range", "simulated")

    def __init__(
        self, live: Live, epsilon: Fraction | None, noise: Any, reward_range: tuple[float, float] | None
    ) -> None:
        self._live, self._noise, self.epsilon, self.reward_range = live, noise, epsilon, reward_range
        trust = live.policy.guarantee.trust
        self.local, self.private = trust == "local", trust != "none"
        self.simulated = isinstance(noise, np.random.Generator)

    @property
    def policy(self) -> Policy:
        """The session's policy."""
        return self._live.policy

    def value(self, decision: str, response: Any) -> tuple[float, float]:
        """(response, level) of the answer to a decision."""
        if not self.local:
            return self.reward(response), 0.0
        made = self.response(response)
        if made.decision != decision:
            raise InputError("response", f"must be the one to decision {decision}, got that to {made.decision}")
        return self.taken(made)

    def taken(self, made: Response) -> tuple[float, float]:
        """(response, level) of a device's response."""
        if self.epsilon is not None and made.epsilon is not self.epsilon and made.epsilon != self.epsilon:
            raise InputError("response", f"must be made at epsilon {self.epsilon}, got one at {made.epsilon}")
        if not self._live.curator.accepts(made.value):
            raise InputError("response", f"is a value that no device of {self.policy.name} sends")
        return made.value, as_level(made.epsilon)

    def response(self, response: Any) -> Response:
        """A device's response, or its bytes."""
        steps = self._live.curator.steps
        if isinstance(response, Response):
            made = response.exact != self.simulated and response.steps == steps
            if not made or (response.exact and not float(response.value * steps).is_integer()):
                raise InputError("response", "must be made by a device of this session; this is not")
            return response
        if not isinstance(response, bytes | str):
            raise InputError("response", "must be made by a device, not a reward; see Session.device")
        if self.simulated:
            raise InputError("noise", "must be exact for responses of real devices, got a session with simulated noise")
        sent = decode(response)
        try:
            value = sent.response / steps
        except OverflowError:
            raise InputError("response", f"is a value that no device of {self.policy.name} sends") from None
        return Response(sent.decision, sent.epsilon, value, steps, exact=True)

    def reward(self, reward: Any) -> float:
        """A reward of the central model: mapped to [0, 1], and on the grid where the noise is exact."""
        value = as_number(reward)
        if self.reward_range is not None:
            low, high = self.reward_range
            value = unit((value - low) / (high - low))
        elif self.simulated and self.private and not 0.0 <= value <= 1.0 and not self.policy.any_reward:
            warnings.warn("a reward outside [0, 1] was clipped: reward_range maps another range to it", stacklevel=3)
        value = float(self.policy.curator.respond(value, 0.0, self._noise))
        if not self.policy.curator.accepts(value):
            raise InputError("reward", f"must lie in [0, 1] for {self.policy.name}; this one does not")
        if self.private and not self.simulated:
            return on_grid(unit(value))
        return value


def logged(log: Any, arms: tuple[Any, ...], told: Told) -> list[list[tuple[float, float]]]:
    """(response, level) of each arm in a log, the first one last."""
    numbers = {str(name): number for number, name in enumerate(arms)}
    found: list[list[tuple[float, float]]] = [[] for _ in arms]
    seen: set[str] = set()
    for arm, answer in _pairs(log, told):
        if str(arm) not in numbers:
            shown = f"'{arm[:80]}'" if isinstance(arm, str) else f"a {type(arm).__name__}"  # it may be the reward
            raise InputError("log", f"must name arms of this session, got {shown}")
        if told.local:
            made = told.response(answer)
            if made.decision in seen:
                raise InputError("log", f"must hold one response to a decision, got two to {made.decision}")
            seen.add(made.decision)
            found[numbers[str(arm)]].append(told.taken(made))
        else:
            found[numbers[str(arm)]].append((told.reward(answer), 0.0))
    return [rewards[::-1] for rewards in found]


def _pairs(log: Any, told: Told) -> Iterable[tuple[Any, Any]]:
    """Pairs of an arm and its reward, or its response in the local model."""
    of_rewards = is_frame(log) or isinstance(log, str | Arms | Log) or hasattr(log, "__fspath__")
    if not of_rewards:
        return pairs_of(log)
    if told.local:
        raise InputError("log", "must be pairs of an arm and a device's response in the local model, got rewards")
    read = log.log if isinstance(log, Arms) else log
    if read is None:  # arms that were not read from a log
        return pairs_of(read)
    if not isinstance(read, Log):
        read = read_log(read)
    if not told.private or told.reward_range is not None:
        read.check(*(told.reward_range or (0.0, 1.0)))
    return [(name, reward) for name, rewards in zip(read.names, read.rewards, strict=True) for reward in rewards]
