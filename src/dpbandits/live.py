"""One running policy whose responses come late, in any order, or never: the rules, without clock, chance or storage.

``Desk`` holds the rules as a part, so that simulations with delays play the very same code, compiled. ``Live`` adds the
decisions that are open. The rules:

1. The round of a decision is its number. An agent decides from what has been folded so far. With a window, decisions
   that wait for a response count in the index as if their responses had come and were like those before; otherwise
   everybody would be given the same arm while responses are on their way. Without a window they do not count, because
   those whose responses are lost would count for ever.
2. A curator that releases whole stints gets whole stints. A stint is open until as many responses have come as it asked
   for, or until the window of the last decision that it asked for has passed. While it is open its arm is served,
   beyond the number asked for if responses are still out. Its release is over the responses that came. If none came,
   nothing is released, and it is begun again.
3. Other curators may change their release with every response. There a stint is a number of decisions, and its line is
   looked at whenever a response is folded.
4. What comes after its window, or after its stint was closed, is counted and not used. What is missing is never a zero.
5. So what is closed when depends on counts and on time, and on rewards only through what was released.
6. Nothing is drawn twice. ``version`` counts what was released: whoever keeps the state stores it, as ``freeze`` writes
   it, whenever the version has changed and before anything that depends on it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from dpbandits.curators.awaiting import awaiting
from dpbandits.errors import ChoiceError, InputError
from dpbandits.parts import freeze, in_plain_python, thaw
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE, Agent, Curator, Releases
from dpbandits.types import Floats, Integers, Rng

__all__ = ["Desk", "Live", "OpenDecision", "Status"]

#: What became of a response.
Status = Literal["used", "late", "missing"]


class Desk(NamedTuple):
    """Where decisions are made and responses are taken in. Times are numbers in any unit, the same throughout.

    >>> from dpbandits.agents import Doubling, UCB
    >>> from dpbandits.curators import Batch
    >>> agent, curator, rng = Doubling.start(2, UCB.start(2)), Batch.start(2, epsilon=1.0), np.random.default_rng(0)
    >>> desk = Desk.start(2, by_stint=curator.by_stint)
    >>> [desk.decide(curator, curator, agent, 0.0, rng, rng) for _ in range(3)]  # no response yet: one arm is served
    [0, 0, 0]
    >>> desk.receive(curator, 0, 1, 0.0, 1.0, 0.0, 1.0, rng)  # the one response that the first stint asked for
    True
    >>> desk.decide(curator, curator, agent, 1.0, rng, rng)
    1
    """

    by_stint: bool  # whether the curator releases whole stints
    window: float  # how long a response is waited for
    decisions: Integers  # (1,): made so far
    out: Integers  # (arms,): decisions that wait for a response
    folded: Integers  # (1,): responses that were used
    late: Integers  # (1,): responses that came and were not used
    closed: Integers  # (1,): stints that were released
    stint: Integers  # (1,): the number of the last stint
    arm: Integers  # (1,): of the last stint
    asked: Integers  # (1,): how much the open stint asks for; 0 where none is open
    given: Integers  # (1,): decisions of the open stint
    arrived: Integers  # (1,): responses of the open stint
    line: Floats  # (1,): of the open stint
    closing: Floats  # (1,): when the open stint closes, whatever has come

    @classmethod
    def start(cls, arms: int, *, by_stint: bool, window: float = math.inf) -> Self:
        """A fresh desk."""
        out, numbers, times = np.zeros(arms, np.int64), np.zeros((9, 1), np.int64), np.zeros((2, 1))
        return cls(by_stint, window, numbers[0], out, *numbers[1:], *times)

    def decide(self, releases: Releases, curator: Curator, agent: Agent, now: float, noise: Rng, choices: Rng) -> int:
        """The arm of the next decision. ``releases`` is what the agent sees of the curator."""
        self.tick(curator, now, noise)
        if self.asked[0] == 0:
            arm, stint, line = agent.act(releases, self.decisions[0] + 1, choices)
            if arm < 0 or arm >= len(self.out) or stint < 1:
                raise ChoiceError("act must return an arm that exists and a stint of at least 1")
            self.stint[0] += 1
            self.arm[0], self.asked[0], self.line[0] = arm, stint, line
            self.given[0], self.arrived[0], self.closing[0] = 0, 0, math.inf
        arm = int(self.arm[0])
        self.decisions[0] += 1
        self.given[0] += 1
        self.out[arm] += 1
        if self.given[0] == self.asked[0]:
            if self.by_stint:
                self.closing[0] = now + self.window
            else:
                self.asked[0] = 0
        return arm

    def receive(
        self,
        curator: Curator,
        arm: int,
        stint: int,
        decided: float,
        response: float,
        level: float,
        now: float,
        noise: Rng,
    ) -> bool:
        """Fold a response to a decision of ``stint`` made at the time ``decided``; whether it was used."""
        self.tick(curator, now, noise)
        self.out[arm] -= 1
        closed = self.by_stint and (self.asked[0] == 0 or stint != self.stint[0])
        if now > decided + self.window or closed:
            self.late[0] += 1
            return False
        curator.add(arm, response, level, noise)
        self.folded[0] += 1
        if self.by_stint:
            self.arrived[0] += 1
            if self.arrived[0] == self.asked[0]:
                self.close(curator, noise)
        elif self.asked[0] > 0 and arm == self.arm[0] and self.line[0] > NO_LINE and curator.mean(arm) <= self.line[0]:
            self.asked[0] = 0
        return True

    def tick(self, curator: Curator, now: float, noise: Rng) -> None:
        """Close the open stint if its time is over; if nothing came, begin it again."""
        if self.by_stint and self.asked[0] > 0 and now > self.closing[0]:
            if self.arrived[0] > 0:
                self.close(curator, noise)
            else:
                self.given[0], self.closing[0] = 0, math.inf

    def close(self, curator: Curator, noise: Rng) -> None:
        """Release the open stint."""
        curator.close(int(self.arm[0]), noise)
        self.closed[0] += 1
        self.asked[0] = 0


class OpenDecision(NamedTuple):
    """A decision that waits for its response."""

    number: int  # its round
    arm: int
    stint: int
    time: float  # when it was made


class Live:
    """A policy and the decisions that are open. Time and noise are arguments; nothing is stored here.

    >>> from dpbandits import policies
    >>> live, rng = Live(policies.ldp_ucb_b(2, epsilon=1.0)), np.random.default_rng(0)
    >>> one, two = (live.decide(0.0, rng, rng) for _ in range(2))
    >>> live.receive(two.number, 1.0, 0.0, 1.0, rng), live.receive(one.number, 0.0, 0.0, 2.0, rng), live.version
    ('used', 'used', 2)
    >>> live.decide(2.0, rng, rng).arm
    1
    """

    def __init__(self, policy: Policy, *, window: float = math.inf) -> None:
        self.policy = policy.fresh()
        self.open: dict[int, OpenDecision] = {}  # in the order of time
        self.expired: set[int] = set()  # numbers of decisions whose window has passed without a response
        self._desk = Desk.start(policy.arms, by_stint=self.policy.curator.by_stint, window=window)
        self.desk = in_plain_python(self._desk)
        self.agent = in_plain_python(self.policy.agent)
        self.curator = in_plain_python(self.policy.curator)
        self.releases = awaiting(self.curator, self.desk.out, window)

    def decide(self, now: float, noise: Rng, choices: Rng) -> OpenDecision:
        """The next decision."""
        made = self.desk.decisions[0]
        if self.policy.horizon is not None and made >= self.policy.horizon:
            raise InputError("horizon", f"is {self.policy.horizon} rounds for this {self.policy.name}: all are played")
        if self.desk.window < math.inf:
            self.tick(now, noise)
        arm = self.desk.decide(self.releases, self.curator, self.agent, now, noise, choices)
        decision = OpenDecision(made + 1, arm, self.desk.stint[0], now)
        self.open[decision.number] = decision
        return decision

    @property
    def version(self) -> int:
        """How often something was released: whole stints, or every response that was used."""
        return self.desk.closed[0] if self.desk.by_stint else self.desk.folded[0]

    def receive(self, number: int, response: float | None, level: float, now: float, noise: Rng) -> Status:
        """Take the response to an open decision; None is a user who sends none. Each decision has one answer."""
        if self.desk.window < math.inf:
            self.tick(now, noise)
        decision = self.open.pop(number, None)
        if decision is None:
            if number not in self.expired:
                raise InputError("decision", f"must be one that waits for a response, got {number}")
            self.expired.remove(number)
            self.desk.late[0] += 1
            return "late"
        if response is None:
            self.desk.out[decision.arm] -= 1
            return "missing"
        _, arm, stint, decided = decision
        used = self.desk.receive(self.curator, arm, stint, decided, response, level, now, noise)
        return "used" if used else "late"

    def tick(self, now: float, noise: Rng) -> None:
        """Let time pass: close a stint whose window is over, and no longer wait for responses that are too late."""
        self.desk.tick(self.curator, now, noise)
        while self.open and self.desk.window < math.inf:
            number, arm, _, decided = next(iter(self.open.values()))
            if now <= decided + self.desk.window:
                break
            del self.open[number]
            self.expired.add(number)
            self.desk.out[arm] -= 1

    def freeze(self) -> dict[str, Any]:
        """Everything that the future depends on but time and chance, JSON-ready. It holds open sums of rewards."""
        parts = {"desk": self._desk, "agent": self.policy.agent, "curator": self.policy.curator}
        record: dict[str, Any] = {name: freeze(part) for name, part in parts.items()}
        record["desk"] = {name: [_written(x) for x in values] for name, values in record["desk"].items()}
        record["open"] = [list(decision) for decision in self.open.values()]
        record["expired"] = sorted(self.expired)
        return record

    def thaw(self, record: Mapping[str, Any]) -> None:
        """Take over what ``freeze`` wrote, or refuse what does not fit."""
        parts = {"desk": self._desk, "agent": self.policy.agent, "curator": self.policy.curator}
        for name, part in parts.items():
            frozen = record[name]
            if name == "desk":
                frozen = {key: [_read(x) for x in values] for key, values in frozen.items()}
            thaw(part, frozen)
        decisions = [OpenDecision(int(a), int(b), int(c), float(d)) for a, b, c, d in record["open"]]
        self.open = {decision.number: decision for decision in decisions}
        self.expired = {int(number) for number in record["expired"]}


def _written(x: float) -> float | str:
    """A number for JSON, which has no infinity."""
    return x if math.isfinite(x) else str(x)


def _read(x: float | str) -> float:
    return float(x) if isinstance(x, str) else x
