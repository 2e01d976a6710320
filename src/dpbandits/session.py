"""Ask and tell: one policy live, with as many open decisions as there are users; frozen to JSON, and thawed."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from dpbandits import __version__
from dpbandits.checks import at_least, positive
from dpbandits.errors import InputError
from dpbandits.exact import Exactly, ExactNoise, SystemNoise, rational, require_exact
from dpbandits.exact.wire import decode, encode
from dpbandits.live import Live, Status
from dpbandits.numerics import on_grid, unit
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Curator

__all__ = ["Decision", "Response", "Session", "SessionDevice"]

FORMAT = 2
SIMULATED: Literal["simulated"] = "simulated"

EXACT_NOISE = "the noise is exact: integers from the operating system's entropy"
NO_PROMISE = "the noise is simulated: no promise on real rewards"


class Decision(NamedTuple):
    """Which arm to play for one user. ``arm`` is its name where the arms have names, and its number otherwise."""

    id: str
    arm: Any
    number: int  # of the arm


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


class Session:
    """One policy live.

    ``policy`` is a policy, or the name of one with ``arms`` (their names, or how many), ``epsilon`` and options. Many
    decisions may be open, and are answered in any order. In the local model ``tell`` takes the response that the user's
    device made; otherwise the reward, which a private curator keeps to itself. The noise is exact unless it is
    ``"simulated"``, which is for trying things out: then a ``seed`` makes it repeatable. With a ``window`` in seconds a
    response that comes later is not used. A session may be shared between threads.

    >>> session = Session("ldp-ucb-b", arms=["red", "green", "blue"], epsilon="1")
    >>> decision = session.ask()
    >>> session.tell(decision, session.device().respond(decision, reward=1))
    'used'
    >>> Session.thaw(session.freeze()).ask().arm
    'green'
    """

    def __init__(
        self,
        policy: str | lookup.Factory | Policy,
        *,
        arms: int | Sequence[Any] | None = None,
        epsilon: Exactly | None = None,
        horizon: int | None = None,
        options: Mapping[str, Any] | None = None,
        noise: ExactNoise | Literal["simulated"] | None = None,
        seed: int | None = None,
        window: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.arms, made = _made(policy, arms, epsilon, horizon, options)
        self.window = None if window is None else positive("window", window)
        self._live = Live(made, window=self.window or math.inf)
        self._clock, self._lock = clock, threading.Lock()
        level = made.settings.get("epsilon") if epsilon is None else epsilon
        self._epsilon = None if level is None else rational("epsilon", level)
        trust = made.guarantee.trust
        self._local, self._private = trust == "local", trust != "none"
        self.simulated = noise == SIMULATED
        if seed is not None and not self.simulated:
            raise InputError("seed", f"is for simulated noise alone, got {seed}")
        streams = np.random.SeedSequence(seed).spawn(2)
        self._choices = np.random.default_rng(streams[1])
        self._noise: Any = np.random.default_rng(streams[0])
        if not self.simulated:
            self._noise = SystemNoise() if noise is None else require_exact(noise)

    @property
    def policy(self) -> Policy:
        """The policy, with what it has learned."""
        return self._live.policy

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, and on which noise that rests."""
        return self.policy.guarantee.under(NO_PROMISE if self.simulated else EXACT_NOISE)

    @property
    def rounds(self) -> int:
        """How many decisions were made."""
        return int(self._live.desk.decisions[0])

    @property
    def version(self) -> int:
        """How often something was released: save the session whenever this has changed, before you act on it."""
        return self._live.version

    def ask(self) -> Decision:
        """The next decision. Every call is a decision of its own, whether or not earlier ones were answered."""
        with self._lock:
            made = self._live.decide(self._clock(), self._noise, self._choices)
            return Decision(str(made.number), self.arms[made.arm], made.arm)

    def device(self, *, level: Exactly | None = None) -> SessionDevice:
        """What runs on a user's device in the local model; ``level`` is that user's epsilon, where users have one."""
        if not self._local:
            raise InputError("device", f"is for the local model; {self.policy.name} is told rewards")
        if self.policy.traits.levels is not None:
            if level is None:
                raise InputError("level", f"is required by {self.policy.name}, got none")
            epsilon = rational("level", level)
        else:
            if level is not None:
                raise InputError("level", f"is not a parameter of {self.policy.name}, got {level}")
            epsilon = self._epsilon or rational("epsilon", self.policy.settings["epsilon"])
        return SessionDevice(self.policy.curator, epsilon, self._noise, exact=not self.simulated)

    def tell(self, decision: Decision | str, response: Any) -> Status:
        """What a decision brought: a device's response or its bytes, or the reward. None is a user who sends nothing.

        The answer is ``used``, ``late`` (it came after its window or after its stint was closed) or ``missing``.
        """
        name = decision.id if isinstance(decision, Decision) else decision
        if not isinstance(name, str) or not name.isdecimal():
            raise InputError("decision", f"must be one that ask returned, got {decision!r:.80}")
        value, level = (None, 0.0) if response is None else self._value(name, response)
        with self._lock:
            return self._live.receive(int(name), value, level, self._clock(), self._noise)

    def _value(self, decision: str, response: Any) -> tuple[float, float]:
        """(response, level) as numbers. A refusal does not show them: they are private."""
        if not self._local:
            return self._reward(response), 0.0
        made = self._response(response)
        if made.decision != decision:
            raise InputError("response", f"must be the one to decision {decision}, got that to {made.decision}")
        if self._epsilon is not None and made.epsilon is not self._epsilon and made.epsilon != self._epsilon:
            raise InputError("response", f"must be made at epsilon {self._epsilon}, got one at {made.epsilon}")
        if not self.policy.curator.accepts(made.value):
            raise InputError("response", f"must be one that a device of {self.policy.name} makes; this is not")
        return made.value, _level(made.epsilon)

    def _response(self, response: Any) -> Response:
        steps = self.policy.curator.steps
        if isinstance(response, Response):
            if response.exact == self.simulated or response.steps != steps:
                raise InputError("response", "must be made by a device of this session; this is not")
            return response
        if not isinstance(response, bytes | str):
            raise InputError("response", "must be what a device made, and not a reward; see Session.device")
        if self.simulated:
            raise InputError("noise", "must be exact for responses of real devices, got a session with simulated noise")
        sent = decode(response)
        try:
            value = sent.response / steps
        except OverflowError:
            raise InputError(
                "response", f"must be one that a device of {self.policy.name} makes; this is not"
            ) from None
        return Response(sent.decision, sent.epsilon, value, steps, exact=True)

    def _reward(self, reward: Any) -> float:
        value = float(self.policy.curator.respond(_number(reward), 0.0, self._noise))
        if not self.policy.curator.accepts(value):
            raise InputError("reward", f"must lie in [0, 1] for {self.policy.name}; this one does not")
        if self._private and not self.simulated:
            return on_grid(unit(value))
        return value

    def freeze(self) -> str:
        """Everything that the session's future depends on, as JSON with a checksum. It holds open sums: keep it safe.

        With exact noise no state of a generator is in it. With simulated noise it is, and whoever has it can compute
        past rewards from releases: it is as secret as the rewards.
        """
        with self._lock:
            record: dict[str, Any] = {
                "format": FORMAT,
                "version": __version__,
                "policy": lookup.written(self.policy.factory),
                "settings": self.policy.settings,
                "arms": list(self.arms),
                "epsilon": None if self._epsilon is None else str(self._epsilon),
                "window": self.window,
                "noise": SIMULATED if self.simulated else "exact",
                "live": self._live.freeze(),
            }
            if self.simulated:
                generators = {"noise": self._noise, "choices": self._choices}
                record["generators"] = {name: rng.bit_generator.state for name, rng in generators.items()}
        return json.dumps({**record, "checksum": _checksum(record)}, allow_nan=False)

    @classmethod
    def thaw(
        cls,
        text: str,
        policy: lookup.Factory | None = None,
        *,
        noise: ExactNoise | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Session:
        """The session that was frozen; ``policy`` is the function that makes it, where its name cannot be imported."""
        record = _read(text)
        simulated = record["noise"] == SIMULATED
        session = cls(
            lookup.find(policy or record["policy"])(**record["settings"]),
            arms=record["arms"],
            noise=SIMULATED if simulated else noise,
            window=record["window"],
            clock=clock,
        )
        session._epsilon = None if record["epsilon"] is None else rational("epsilon", record["epsilon"])
        session._live.thaw(record["live"])
        if simulated:
            session._noise.bit_generator.state = record["generators"]["noise"]
            session._choices.bit_generator.state = record["generators"]["choices"]
        return session


class SessionDevice:
    """The curator on one user's device: it makes the private response to a decision, from the reward.

    In a deployment this is ``dpbandits.client`` or ``clients/js``, which also keep the budget and every response.
    """

    def __init__(self, curator: Curator, epsilon: Fraction, noise: Any, *, exact: bool) -> None:
        self.epsilon, self._level = epsilon, float(epsilon)
        self._curator, self._noise, self._exact = curator, noise, exact

    def respond(self, decision: Decision, reward: float) -> Response:
        """The response to send. Call it once for a reward: every call costs epsilon."""
        value = float(self._curator.respond(_number(reward), self._level, self._noise))
        return Response(decision.id, self.epsilon, value, self._curator.steps, self._exact)


def _level(epsilon: Fraction) -> float:
    try:
        return float(epsilon)
    except OverflowError:
        raise InputError("response", "must be made at an epsilon below 1e308; this is not") from None


def _number(reward: Any) -> float:
    """A reward as a number. A refusal does not show it: it is private."""
    try:
        return float(reward)
    except (OverflowError, TypeError, ValueError):
        raise InputError("reward", "must be a number; this one is none") from None


def _made(
    policy: str | lookup.Factory | Policy,
    arms: int | Sequence[Any] | None,
    epsilon: Exactly | None,
    horizon: int | None,
    options: Mapping[str, Any] | None,
) -> tuple[tuple[Any, ...], Policy]:
    """The names of the arms, and the policy."""
    if isinstance(policy, Policy):
        if epsilon is not None or horizon is not None or options:
            raise InputError("policy", "is made already: epsilon, horizon and options are its own")
        count = policy.arms if arms is None else arms
        names = tuple(range(count)) if isinstance(count, int) else tuple(count)
        made = policy
    else:
        if arms is None:
            raise InputError("arms", "is required: the names of the arms, or how many there are, got none")
        names = tuple(range(at_least("arms", arms, 2))) if isinstance(arms, int) else tuple(arms)
        level = None if epsilon is None else float(rational("epsilon", epsilon))
        made = lookup.make(policy, arms=len(names), epsilon=level, horizon=horizon, given=options)
    if len(set(names)) != made.arms:
        raise InputError("arms", f"must be {made.arms} different names, got {list(names)}")
    return names, made


def _checksum(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _read(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
        checksum = record.pop("checksum", None)
    except (AttributeError, TypeError, ValueError):
        raise InputError("text", "must be a saved session; this is none") from None
    if record.get("format") != FORMAT:
        raise InputError("text", f"must be a saved session of format {FORMAT}, got {record.get('format')}")
    if checksum != _checksum(record):
        raise InputError("text", "was changed after it was saved: its checksum does not fit")
    return dict(record)
