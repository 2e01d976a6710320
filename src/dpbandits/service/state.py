"""What one experiment has learned: the desk, the agent and the curator of a policy, and what is still on its way.

It is ``live.Live`` without the decisions that are open: those are in the database, and what the rules need of them is
in their tokens. Of open decisions only numbers are kept, by arm and by time, so that memory does not grow with traffic.
Time, noise and chance are arguments. Nothing is stored here: whoever holds a state works on a copy of it, stores what
``freeze`` writes, and forgets the old one only when the new one is on disk.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from dpbandits.changing import SomeArms, choosing_among, keep, with_more_arms
from dpbandits.live import Desk, seen
from dpbandits.parts import arrays, copied, freeze, in_plain_python, thaw
from dpbandits.policies.policy import Policy
from dpbandits.privacy.ledger import LedgerError
from dpbandits.protocols import Releases

__all__ = ["LiveState", "Release", "extended"]

#: A window is divided into this many parts; decisions of one part count as waiting until the window of the last ends.
PARTS = 32


class Release(NamedTuple):
    """What was released when a stint closed."""

    stint: int
    arm: int
    responses: int
    asked: int
    mean: float
    early: bool = False  # because its arm was paused

    @property
    def reason(self) -> str:
        """Why the stint closed."""
        if self.responses >= self.asked:
            return "count"
        return "pause" if self.early else "deadline"


class LiveState:
    """One policy with its memory.

    >>> from dpbandits import policies
    >>> from dpbandits.exact import SystemNoise
    >>> rng, noise = np.random.default_rng(0), SystemNoise()
    >>> state = LiveState(policies.adap_ucb(2, epsilon=1.0), window=60.0)
    >>> [state.decide(0.0, noise, rng) for _ in range(3)]  # (arm, stint): one arm is served until something comes
    [(0, 1), (0, 1), (0, 1)]
    >>> state.receive(0, 1, 0.0, 1.0, 0.0, 1.0, noise), state.version, state.decide(1.0, noise, rng)
    (True, 1, (1, 2))
    """

    def __init__(self, policy: Policy, window: float) -> None:
        policy = policy.fresh()
        desk = Desk.start(policy.arms, by_stint=policy.curator.by_stint, window=window)
        self._take(policy, desk, policy.agent, policy.curator, {}, frozenset())

    def _take(
        self,
        policy: Policy,
        desk: Desk,
        agent: Any,
        curator: Any,
        waiting: dict[int, list[float]],
        paused: frozenset[int],
    ) -> None:
        self.policy, self.parts, self.waiting = policy, {"desk": desk, "agent": agent, "curator": curator}, waiting
        self.desk, self.curator = in_plain_python(desk), in_plain_python(curator)
        self._some: SomeArms | None = None  # the agent, while arms are paused
        self.releases: Releases = seen(policy, self.curator, self.desk)
        self.released: list[Release] = []  # since this copy was made
        self.random_decisions = 0  # decisions that were made at random
        self.deputy = False  # whether this is a copy that decides while another one folds: it never draws noise
        self._kept = _Kept(self) if desk.by_stint else self.curator
        self._part = desk.window / PARTS
        self._horizon = policy.horizon
        self._ticked = -math.inf
        self._look = -math.inf  # when the oldest decisions stop waiting, at the earliest
        self.pause(paused)

    def copy(self) -> Self:
        """The same state with memory of its own."""
        self.sync()
        made = object.__new__(type(self))
        desk, agent, curator = (copied(part) for part in self.parts.values())
        waiting = {part: list(row) for part, row in self.waiting.items()}
        made._take(self.policy, desk, agent, curator, waiting, self.paused)
        made.random_decisions, made.deputy, made._look = self.random_decisions, self.deputy, self._look
        return made

    @property
    def version(self) -> int:
        """How often something was released: whole stints, or every response that was used."""
        return int(self.desk.closed[0] if self.desk.by_stint else self.desk.folded[0])

    @property
    def decisions(self) -> int:
        """How many decisions were made by the policy."""
        return int(self.desk.decisions[0])

    @property
    def over(self) -> bool:
        """Whether all rounds are played of a policy that is made for a number of rounds."""
        return self.left == 0

    @property
    def left(self) -> float:
        """For how many more decisions the policy is made."""
        return math.inf if self.policy.horizon is None else max(self.policy.horizon - self.decisions, 0)

    def decide(self, now: float, noise: Any, choices: Any) -> tuple[int, int]:
        """(arm, stint) of the next decision."""
        self.tick(now, noise)
        if self.deputy and self.desk.by_stint:
            stint = self.desk.stint[0] if self.desk.asked[0] > 0 else 0
            self.note(self.desk.arm[0], stint, now)
            return int(self.desk.arm[0]), stint
        arm = self.desk.decide(self.releases, self._kept, self.agent, now, noise, choices)
        self._wait(arm, now, 1)
        return arm, self.desk.stint[0]

    def decide_alike(self, arm: int, stint: int, most: int, now: float) -> int:
        """Up to ``most`` decisions like one that was just made; how many they are: all where a stint is released whole.

        >>> from dpbandits import policies
        >>> from dpbandits.exact import SystemNoise
        >>> state = LiveState(policies.adap_ucb(2, epsilon=1.0), window=60.0)
        >>> arm, stint = state.decide(0.0, SystemNoise(), np.random.default_rng(0))
        >>> state.decide_alike(arm, stint, 9, 0.0), state.decisions
        (9, 10)
        """
        if not self.desk.by_stint:
            return 0
        self.note(arm, stint, now, most)
        return most

    def peek(self, now: float, noise: Any, choices: Any) -> int:
        """The arm that ``decide`` would choose now; no decision is counted."""
        self.open(now, noise, choices)
        if self.desk.asked[0] > 0 or self.desk.by_stint or self.over:
            return int(self.desk.arm[0])
        return int(self.agent.act(self.releases, self.desk.decisions[0] + 1, choices)[0])

    def current(self) -> tuple[int, int]:
        """(arm, stint) of the open stint, or (-1, 0)."""
        return (self.desk.arm[0], self.desk.stint[0]) if self.desk.asked[0] > 0 else (-1, 0)

    def open(self, now: float, noise: Any, choices: Any) -> None:
        """Open the next stint now, so that others can hand out its decisions.

        An agent that remembers nothing is asked with each decision instead: asking it once more changes nothing.
        """
        self.tick(now, noise)
        if self.desk.asked[0] > 0 or self.over or self.deputy:
            return
        if self.desk.by_stint or next(arrays(self.parts["agent"]), None) is not None:
            self.desk.open(self.releases, self.agent, choices)

    def note(self, arm: int, stint: int, now: float, count: int = 1) -> None:
        """Count decisions that were made elsewhere, or that the policy did not choose (stint 0)."""
        self.desk.hand_out(arm, stint, now, count)
        self._wait(arm, now, count)

    def receive(self, arm: int, stint: int, made: float, value: float, level: float, now: float, noise: Any) -> bool:
        """Fold a response; whether it was used."""
        if now != self._ticked:
            self.tick(now, noise)
        row = self.waiting.get(int(made // self._part))
        if row is None or row[1 + arm] == 0:  # it is no longer waited for
            self.desk.late[0] += 1
            return False
        row[1 + arm] -= 1
        if self._horizon is not None and self.desk.folded[0] >= self._horizon:
            self.desk.out[arm] -= 1  # its guarantee is for this many responses, whoever handed out more decisions
            self.desk.late[0] += 1
            return False
        return self.desk.receive(self._kept, arm, stint, made, value, level, now, noise)

    def miss(self, arm: int, made: float) -> None:
        """A response came, and is not used: its decision no longer waits."""
        row = self.waiting.get(int(made // self._part))
        if row is not None and row[1 + arm] > 0:
            row[1 + arm] -= 1
            self.desk.out[arm] -= 1
        self.desk.late[0] += 1

    def tick(self, now: float, noise: Any) -> None:
        """Let time pass: close a stint whose window is over, and no longer wait for what is too late."""
        if now == self._ticked:
            return
        self._ticked = now
        if not self.deputy:
            self.desk.tick(self._kept, now, noise)
        if now < self._look or self.desk.window == math.inf:
            return
        self._look = math.inf
        for part, (latest, *counts) in list(self.waiting.items()):
            over = latest + self.desk.window
            if over < now:
                del self.waiting[part]
                for arm, count in enumerate(counts):
                    self.desk.out[arm] -= int(count)
            else:
                self._look = min(self._look, over)

    def _wait(self, arm: int, now: float, count: int) -> None:
        part = int(now // self._part)
        row = self.waiting.get(part)
        if row is None:
            row = self.waiting[part] = [now, *[0] * len(self.desk.out)]
            self._look = -math.inf
        row[0] = max(row[0], now)
        row[1 + arm] += count

    def pause(self, paused: frozenset[int]) -> None:
        """Choose among the other arms alone; refused where the policy does not allow it."""
        self.sync()
        left = tuple(arm for arm in range(len(self.desk.out)) if arm not in paused)
        self._some = choosing_among(self.remembering(), left) if paused else None
        self.paused, self.agent = paused, in_plain_python(self._some or self.parts["agent"])

    def remembering(self) -> Policy:
        """The policy with what it has learned."""
        return dataclasses.replace(self.policy, agent=self.parts["agent"], curator=self.parts["curator"])

    def sync(self) -> None:
        """Put what the agent of some arms remembers into the policy's agent."""
        if self._some is not None:
            keep(self.remembering(), self._some)

    def close_on(self, arm: int, noise: Any) -> None:
        """End the open stint if it is on this arm, which has just been paused. What came is released."""
        before = len(self.released)
        self.desk.end_on(arm, self._kept, self.parts["agent"], noise)
        self.released[before:] = [one._replace(early=True) for one in self.released[before:]]

    def freeze(self) -> dict[str, Any]:
        """Everything that the future depends on but time and chance, JSON-ready. It holds open sums of rewards."""
        self.sync()
        record: dict[str, Any] = {name: freeze(part) for name, part in self.parts.items()}
        return {
            **record,
            "lots": self.random_decisions,
            "waiting": {str(part): row for part, row in self.waiting.items() if any(row[1:])},
        }

    def thaw(self, record: Mapping[str, Any]) -> None:
        """Take over what ``freeze`` wrote, or refuse what does not fit."""
        for name, part in self.parts.items():
            thaw(part, record[name])
        self.waiting = {int(part): list(row) for part, row in record["waiting"].items()}
        by_chance = record["lots"] if "lots" in record else record["served"]  # earlier versions counted all decisions
        self.random_decisions, self._look, self._some = int(by_chance), -math.inf, None
        self.pause(self.paused)


def extended(state: LiveState) -> LiveState:
    """The same state with one more arm, of which nothing is known; refused where the policy does not allow it.

    >>> from dpbandits import policies
    >>> len(extended(LiveState(policies.ucb1(2), math.inf)).desk.out)
    3
    """
    state.sync()
    policy = with_more_arms(state.remembering())
    desk = state.parts["desk"]._replace(out=np.append(state.parts["desk"].out, 0))
    made = object.__new__(LiveState)
    waiting: dict[int, list[float]] = {part: [*row, 0] for part, row in state.waiting.items()}
    made._take(policy, copied(desk), policy.agent, policy.curator, waiting, state.paused)
    made.random_decisions, made.deputy = state.random_decisions, state.deputy
    return made


class _Kept:
    """The curator of a state, whose releases are written down: each stint is released once."""

    __slots__ = ("_state",)

    def __init__(self, state: LiveState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state.curator, name)

    def close(self, arm: int, rng: Any) -> None:
        state, desk = self._state, self._state.desk
        stint = int(desk.stint[0])
        if state.released and state.released[-1].stint >= stint:
            raise LedgerError(f"stint {stint} must be released once, got a second draw")
        state.curator.close(arm, rng)
        mean = float(state.curator.mean(arm))
        state.released.append(Release(stint, arm, int(desk.arrived[0]), int(desk.asked[0]), mean))
