"""Ask and tell: one policy live, a round at a time; frozen to JSON, and thawed where it stood."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from dpbandits import __version__
from dpbandits.errors import InputError, positive
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE

FORMAT = 1


class Session:
    """The loop of ``simulation.loop``, turned inside out.

    In the local model ``tell`` takes the response that the user's device made; otherwise the reward, which a private
    curator keeps to itself. A session starts afresh, and is not safe to share between threads. Its noise is simulation
    noise, from a seeded generator: for trying things out, not for deployment.

    >>> from dpbandits import policies
    >>> session = Session(policies.ldp_ucb_b(arms=3, epsilon=1.0))
    >>> for response in (0, 1, 0):
    ...     arm = session.ask()
    ...     session.tell(response)
    >>> session.ask(), Session.thaw(session.freeze()).ask()
    (1, 1)
    """

    def __init__(self, policy: Policy, *, seed: int | None = None) -> None:
        self.policy = policy.fresh()
        self.rounds = 0
        self._arm = 0
        self._left = 0
        self._line = NO_LINE
        noise, choices = np.random.SeedSequence(seed).spawn(2)
        self._noise, self._choices = np.random.default_rng(noise), np.random.default_rng(choices)

    def ask(self) -> int:
        """The arm to play now; the same until ``tell`` is called."""
        if self.policy.horizon is not None and self.rounds >= self.policy.horizon:
            raise InputError(f"horizon is {self.policy.horizon} rounds for this {self.policy.name}: all are played")
        if self._left == 0:
            arm, stint, line = self.policy.agent.act(self.policy.curator, self.rounds + 1, self._choices)
            self._arm, self._left, self._line = int(arm), int(stint), float(line)
        return self._arm

    def tell(self, response: float | None, *, level: float | None = None) -> None:
        """What the round that was asked for brought: the device's response, or the reward.

        ``level`` is the user's own epsilon, where the policy has levels; None as response is a user who sends nothing.
        """
        if self._left == 0:
            raise InputError("tell must follow ask: no arm has been asked for in this round")
        level = self._level(response, level)
        curator = self.policy.curator
        value = math.nan if response is None else self._value(response)
        curator.add(self._arm, value, level, self._noise)
        self.rounds += 1
        self._left -= 1
        if self._left == 0:
            curator.close(self._arm, self._noise)
        elif self._line > NO_LINE and curator.mean(self._arm) <= self._line:
            self._left = 0

    def _value(self, response: float) -> float:
        """The response as a number. A refusal does not show it: it is private."""
        try:
            value = float(response)
        except (TypeError, ValueError):
            raise InputError("response must be a number; this one is none") from None
        if not self.policy.curator.accepts(value):
            raise InputError(f"response must be one that {self.policy.name} can be told; this one is not")
        return value

    def _level(self, response: float | None, level: float | None) -> float:
        if "epsilon_min" not in self.policy.settings:
            if level is not None:
                raise InputError(f"level is not a parameter of {self.policy.name}, got {level}")
            if response is None:
                raise InputError(f"response is required by {self.policy.name}, got none")
            return 0.0
        if response is None:
            return 0.0
        return positive("level", level)  # type: ignore[arg-type]  # None is refused

    def freeze(self) -> str:
        """Everything that the session's future depends on, as JSON. It holds open sums: keep it as safe as rewards."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": __version__,
                "policy": self.policy.name,
                "settings": self.policy.settings,
                "rounds": self.rounds,
                "arm": self._arm,
                "left": self._left,
                "line": None if self._line == NO_LINE else self._line,
                "agent": _freeze(self.policy.agent),
                "curator": _freeze(self.policy.curator),
                "noise": self._noise.bit_generator.state,
                "choices": self._choices.bit_generator.state,
            },
            allow_nan=False,
        )

    @classmethod
    def thaw(cls, text: str, policy: lookup.Factory | None = None) -> Session:
        """The session that was frozen; ``policy`` is the function that makes it, where it is not one of ours."""
        try:
            record = json.loads(text)
            version = record["format"]
        except (TypeError, KeyError, ValueError):
            raise InputError("text must be a frozen session; this is none") from None
        if version != FORMAT:
            raise InputError(f"format of a frozen session must be {FORMAT}, got {version}")
        session = cls(lookup.find(policy or record["policy"])(**record["settings"]))
        _thaw(session.policy.agent, record["agent"])
        _thaw(session.policy.curator, record["curator"])
        session.rounds, session._arm, session._left = record["rounds"], record["arm"], record["left"]
        session._line = NO_LINE if record["line"] is None else record["line"]
        session._noise.bit_generator.state = record["noise"]
        session._choices.bit_generator.state = record["choices"]
        return session


def _freeze(part: Any) -> dict[str, Any]:
    """The memory of a part: its arrays, and those of the parts inside it. Its parameters follow from the settings."""
    frozen: dict[str, Any] = {}
    for name, value in part._asdict().items():
        if isinstance(value, np.ndarray):
            frozen[name] = value.tolist()
        elif hasattr(value, "_asdict"):
            frozen[name] = _freeze(value)
    return frozen


def _thaw(part: Any, frozen: dict[str, Any]) -> None:
    if set(frozen) != set(_freeze(part)):
        raise InputError(f"frozen session does not fit: {type(part).__name__} remembers other things")
    for name, value in frozen.items():
        inner = getattr(part, name)
        if isinstance(inner, np.ndarray):
            array = np.array(value, inner.dtype)
            if array.shape != inner.shape:
                raise InputError(f"frozen session does not fit: {name} has shape {array.shape}, not {inner.shape}")
            inner[...] = array
        else:
            _thaw(inner, value)
