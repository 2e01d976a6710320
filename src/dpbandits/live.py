"""One running policy whose responses come late, in any order, or never: the rules, without clock, chance or storage.

``Desk`` holds the rules as a part, so that simulations with delays play the very same code, compiled. ``Live`` adds the
decisions that are open. The rules:

1. The round of a decision is its number. An agent decides from what has been folded so far. With a window, decisions
   that wait for a response count in the index as if their responses had come and were like those before; otherwise
   everybody would be given the same arm while responses are on their way. Without a window they do not count, because
   those whose responses are lost would count for ever. Nor do they for a policy that stops when it knows the best arm:
   what has not come is no evidence.
2. A curator that releases whole stints gets whole stints. A stint is open until as many responses have come as it asked
   for, or until the window of the last decision that it asked for has passed. While it is open every user gets its
   arm, even after that number of decisions, if responses are still outstanding. Its release is over the responses that
   came. If none came, nothing is released, and it is begun again.
3. Other curators may change their release with every response. There a stint is a number of decisions, and its line is
   looked at whenever a response is folded.
4. What comes after its window, or after its stint was closed, is counted and not used. A missing response never
   counts as a zero.
5. So the time at which a stint is closed depends on counts and on time, and on rewards only through what was released.
6. Nothing is drawn twice. ``version`` counts what was released: whoever keeps the state stores it, as ``freeze`` writes
   it, whenever the version has changed and before anything that depends on it is shown.
7. An arm may be paused, and arms may be added, where the policy allows it. If the open stint is on an arm that is
   paused, it is ended: it is released over what has come, if anything has, and its agent counts the rounds that were
   played, not those that it asked for. Where whole stints are released, later responses to it are late; otherwise
   responses to earlier decisions on the arm are still used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from dpbandits.changing import SomeArms, choosing_among, keep, with_more_arms
from dpbandits.curators.awaiting import awaiting
from dpbandits.errors import InputError, check_choice
from dpbandits.parts import copied, every_field, freeze, in_plain_python, thaw
from dpbandits.policies.policy import Policy
from dpbandits.protocols import FOR_EVER, NO_LINE, Agent, Counting, Curator, Releases
from dpbandits.types import Floats, Integers, Rng

__all__ = ["Desk", "Live", "OpenDecision", "Status", "seen"]

#: What became of a response.
Status = Literal["used", "late", "missing"]

#: How many decisions whose window has passed are remembered. A response to an older one is late, even to one that was
#: answered before.
MOST_EXPIRED = 1 << 16


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
            self.open(releases, agent, choices)
        arm = int(self.arm[0])
        self.hand_out(arm, self.stint[0], now, 1)
        return arm

    def open(self, releases: Releases, agent: Agent, choices: Rng) -> None:
        """Ask the agent for the next stint."""
        arm, stint, line = agent.act(releases, self.decisions[0] + 1, choices)
        check_choice(arm, stint, len(self.out))
        self.stint[0] += 1
        self.arm[0], self.asked[0], self.line[0] = arm, stint, line
        self.given[0], self.arrived[0], self.closing[0] = 0, 0, math.inf

    def hand_out(self, arm: int, stint: int, now: float, count: int) -> None:
        """Count decisions that were made at the time ``now``, in the open stint or outside of it."""
        self.decisions[0] += count
        self.out[arm] += count
        if self.asked[0] > 0 and stint == self.stint[0]:
            before = self.given[0]
            self.given[0] += count
            if before < self.asked[0] <= self.given[0]:
                if self.by_stint:
                    self.closing[0] = now + self.window
                else:
                    self.asked[0] = 0

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
        """Fold a response to a decision of ``stint`` made at the time ``decided``; whether it was used.

        ``tick`` must have been told the time before, so that a stint whose time is over is closed.
        """
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

    def end_on(self, arm: int, curator: Curator, agent: Agent, noise: Rng) -> None:
        """End the open stint early if it is on this arm, with what has come, and tell the agent what was not played.

        Only here does a stint without a line end before as many decisions were made as it asked for.
        """
        if self.asked[0] == 0 or self.arm[0] != arm:
            return
        unplayed = max(self.asked[0] - self.given[0], 0)
        if self.by_stint and self.arrived[0] > 0:
            self.close(curator, noise)
        self.asked[0] = 0
        if isinstance(agent, Counting):
            agent.unplayed(arm, unplayed)


def seen(policy: Policy, curator: Curator, desk: Desk) -> Releases:
    """What the agent of a policy sees of its curator. A policy that stops counts no response before it has come."""
    return curator if policy.traits.stops else awaiting(curator, desk.out, desk.window)


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
        self.open: dict[int, OpenDecision] = {}  # in the order of time
        self.expired: set[int] = set()  # numbers of decisions whose window has passed without a response
        self.forgotten = 0  # decisions up to this number are no longer among the expired
        self.paused: set[int] = set()  # arms that are not chosen for now
        self.pulls = [0] * policy.arms  # decisions by arm
        desk = Desk.start(policy.arms, by_stint=policy.curator.by_stint, window=window)
        self._set(policy.fresh(), desk)

    def _set(self, policy: Policy, desk: Desk) -> None:
        """Play with these parts."""
        self.policy, self._desk = policy, desk
        self.desk = in_plain_python(desk)
        self.curator = in_plain_python(policy.curator)
        self.releases = seen(policy, self.curator, self.desk)
        self._some: SomeArms | None = None
        if self.paused:
            self._some = choosing_among(policy, tuple(arm for arm in range(policy.arms) if arm not in self.paused))
        self.agent = in_plain_python(self._some or policy.agent)

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
        self.pulls[arm] += 1
        return decision

    @property
    def version(self) -> int:
        """How often something was released: whole stints, or every response that was used."""
        return self.desk.closed[0] if self.desk.by_stint else self.desk.folded[0]

    def waits(self, number: int) -> bool:
        """Whether a response to this decision can be taken. It may be too late."""
        return number in self.open or number in self.expired or 0 < number <= self.forgotten

    def receive(self, number: int, response: float | None, level: float, now: float, noise: Rng) -> Status:
        """Take the response to an open decision; None is a user who sends none. Each decision has one answer."""
        if self.desk.window < math.inf:
            self.tick(now, noise)
        decision = self.open.pop(number, None)
        if decision is None:
            if not self.waits(number):
                raise InputError("decision", f"must be one that waits for a response, got {number}")
            self.expired.discard(number)
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
        if len(self.expired) > MOST_EXPIRED:
            ordered = sorted(self.expired)
            self.forgotten = ordered[len(ordered) // 2]
            self.expired = {number for number in ordered if number > self.forgotten}

    def pause(self, arm: int, noise: Rng) -> None:
        """Choose this arm no longer. If it has the open stint, that is ended with what has come."""
        if arm in self.paused:
            return
        left = tuple(other for other in range(self.policy.arms) if other != arm and other not in self.paused)
        choosing_among(self.policy, left)  # refuses what the policy does not allow, before anything changes
        self._sync()
        self.desk.end_on(arm, self.curator, self.policy.agent, noise)
        self.paused.add(arm)
        self._set(self.policy, self._desk)

    def resume(self, arm: int) -> None:
        """Choose this arm again, with all that is known of it."""
        self._sync()
        self.paused.discard(arm)
        self._set(self.policy, self._desk)

    def add_arm(self) -> int:
        """One more arm, of which nothing is known; its number."""
        self._sync()
        policy, number = with_more_arms(self.policy), self.policy.arms
        desk = self._desk._replace(out=np.append(self._desk.out, 0))
        self.pulls.append(0)
        self._set(policy, desk)
        return number

    def _sync(self) -> None:
        """Put what the agent of some arms remembers into the policy's agent."""
        if self._some is not None:
            keep(self.policy, self._some)

    def freeze(self) -> dict[str, Any]:
        """Everything that the future depends on but time and chance, JSON-ready. It holds open sums of rewards."""
        self._sync()
        parts = {"desk": self._desk, "agent": self.policy.agent, "curator": self.policy.curator}
        record: dict[str, Any] = {name: freeze(part) for name, part in parts.items()}
        record["open"] = [list(decision) for decision in self.open.values()]
        record["expired"] = sorted(self.expired)
        record["forgotten"] = self.forgotten
        record["paused"] = sorted(self.paused)
        record["pulls"] = list(self.pulls)
        return record

    def thaw(self, record: Mapping[str, Any]) -> None:
        """Take over what ``freeze`` wrote, or refuse what does not fit."""
        try:
            self._thaw(record)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("text", f"must be a saved session; this one is damaged: {error!r:.80}") from None

    def _thaw(self, record: Mapping[str, Any]) -> None:
        desk, agent, curator = copied(self._desk), copied(self.policy.agent), copied(self.policy.curator)
        thaw(desk, record["desk"])
        thaw(agent, record["agent"])
        thaw(curator, record["curator"])
        opened = [OpenDecision(int(a), int(b), int(c), float(d)) for a, b, c, d in record["open"]]
        expired, forgotten = {int(number) for number in record["expired"]}, int(record.get("forgotten", 0))
        paused = {int(arm) for arm in record.get("paused", [])}
        pulls = [int(count) for count in record.get("pulls", [0] * self.policy.arms)]
        _check_desk(desk)
        _check_memory(agent, curator, self.policy.arms)
        made, arms = int(desk.decisions[0]), self.policy.arms
        _check("decision", all(1 <= one.number <= made for one in opened))
        _check("decision", all(1 <= number <= made for number in expired) and 0 <= forgotten <= made)
        _check("decision", [one.number for one in opened] == sorted({one.number for one in opened} - expired))
        _check("decision", all(0 <= one.arm < arms and 1 <= one.stint <= desk.stint[0] for one in opened))
        _check("decision", all(math.isfinite(one.time) for one in opened))
        waiting = [sum(one.arm == arm for one in opened) for arm in range(arms)]
        _check("decision", waiting == desk.out.tolist())
        _check("arm", paused <= set(range(arms)) and len(pulls) == arms and min(pulls) >= 0)
        self.open, self.expired, self.forgotten = {one.number: one for one in opened}, expired, forgotten
        self.paused, self.pulls = paused, pulls
        self._set(dataclasses.replace(self.policy, agent=agent, curator=curator), desk)


def _check(what: str, holds: bool) -> None:
    if not holds:
        raise InputError("text", f"must be a saved session; this one is damaged: {what} out of range")


def _check_desk(desk: Desk) -> None:
    """Refuse numbers that no run leaves."""
    arms = len(desk.out)
    _check("arm", 0 <= desk.arm[0] < arms)
    counts = (desk.decisions, desk.out, desk.folded, desk.late, desk.closed, desk.stint, desk.given, desk.arrived)
    _check("count", all((count >= 0).all() for count in counts))
    made, given, arrived, asked = (int(count[0]) for count in (desk.decisions, desk.given, desk.arrived, desk.asked))
    _check("count", int(desk.folded[0]) + int(desk.out.sum()) <= made and int(desk.stint[0]) <= made)
    _check("stint", 0 <= asked <= FOR_EVER and (asked == 0 or (arrived < asked and given <= made)))
    _check("line", not math.isnan(desk.line[0]) and not math.isnan(desk.closing[0]))


def _check_memory(agent: Any, curator: Any, arms: int) -> None:
    """Refuse memory that no run leaves: negative counts in parts of ours, or means that are not numbers."""
    _check_arrays(agent, infinite=True)  # an index may be infinite
    _check_arrays(curator, infinite=False)
    for arm in range(arms):
        if curator.ready(arm, 0.0):
            _check("mean", math.isfinite(curator.mean(arm)) and curator.samples(arm, 0) >= 0.0)


def _check_arrays(part: Any, *, infinite: bool) -> None:
    for owner, name, value in every_field(part):
        if isinstance(value, np.ndarray):
            ours = type(owner).__module__.startswith("dpbandits.")
            _check(name, not np.isnan(value).any() if infinite else bool(np.isfinite(value).all()))
            _check(name, not ours or value.dtype != np.int64 or bool((value >= 0).all()))
