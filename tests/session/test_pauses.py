"""What an agent that asks for stints counts when an arm is paused: the rounds that were played."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import pytest

from dpbandits import testing
from dpbandits.agents import UCB
from dpbandits.changing import allows_pauses
from dpbandits.curators import Batch
from dpbandits.live import Live
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.session import Session
from dpbandits.types import Integers, Rng

CHANGEABLE = [policy for policy in map(lookup.sample, lookup.names()) if allows_pauses(policy)]
COUNTING = [policy.name for policy in CHANGEABLE if hasattr(policy.agent, "pulls")]


def begun(name: str, arms: int = 3, window: float = 60.0) -> tuple[Live, Rng, Rng]:
    live = Live(lookup.sample(name, arms=arms, horizon=10_000), window=window)
    return live, np.random.default_rng(1), np.random.default_rng(2)


def counted(live: Live) -> Integers:
    """The rounds that the agent has counted. A freeze puts what an agent of some arms remembers into the policy's."""
    live.freeze()
    agent: Any = live.policy.agent
    return agent.pulls.copy()


def still_asked(live: Live) -> int:
    """How many rounds of the open stint are not played yet."""
    return max(live.desk.asked[0] - live.desk.given[0], 0)


@pytest.mark.parametrize("name", COUNTING)
def test_after_hundreds_of_pauses_the_agent_has_counted_the_rounds_that_were_played(name: str) -> None:
    """Counting what was asked for, it would have doubled with each pause, beyond what an integer holds."""
    live, noise, choices = begun(name)
    for t in range(300):
        decision = live.decide(float(t), noise, choices)
        live.receive(decision.number, 1.0, 0.0, float(t), noise)
        live.pause(decision.arm, noise)
        live.resume(decision.arm)
        assert counted(live).tolist() == live.pulls
    assert live.desk.closed[0] > 0


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("pauses", [False, True])
def test_no_more_rounds_are_counted_than_were_played(name: str, pauses: bool) -> None:
    """With responses that come late or never, stints that close on their window, and arms that stay paused."""
    live, noise, choices = begun(name, arms=4)
    chance, closed = np.random.default_rng(3), 0
    for t in range(1500):
        decision = live.decide(float(t), noise, choices)
        for one in list(live.open.values()):
            if chance.random() < 0.02:
                live.receive(one.number, 1.0 if chance.random() < 0.7 else None, 0.0, float(t), noise)
        if pauses and chance.random() < 0.1:
            for arm in sorted(live.paused)[:-1]:
                live.resume(arm)
            live.pause(decision.arm, noise)
        rounds = counted(live)
        rounds[live.desk.arm[0]] -= still_asked(live)
        assert (rounds <= np.array(live.pulls)).all()
        closed = max(closed, live.desk.closed[0])
    assert closed > 5


def test_a_paused_arm_is_asked_for_as_many_rounds_as_it_has_had() -> None:
    asked = Session("adap-ucb", arms=3, epsilon="1", noise="simulated", seed=0)
    while asked._live.desk.asked[0] < 32:
        decision = asked.ask()
        asked.tell(decision, 1)
    had = asked.pulls[decision.arm]
    asked.pause(decision.arm)
    asked.resume(decision.arm)
    while True:
        again = asked.ask()
        if again.arm == decision.arm:
            break
        asked.tell(again, 0)
    assert asked._live.desk.asked[0] == had


@pytest.mark.parametrize("name", COUNTING)
def test_a_session_that_counted_too_much_when_it_was_saved_goes_on(name: str) -> None:
    """Sessions were saved in which each pause had doubled the count, up to what an integer holds."""
    live, noise, choices = begun(name)
    record = live.freeze()
    record["agent"]["pulls"] = [1 << 62, (1 << 63) - 1, 1 << 18]
    live.thaw(record)
    for t in range(200):
        decision = live.decide(float(t), noise, choices)
        assert live.desk.asked[0] <= max(live.desk.decisions[0], 30)  # 30: the longest first stint
        live.receive(decision.number, 1.0, 0.0, float(t), noise)


class Forgetful(NamedTuple):
    """It asks for three times as many rounds as before, whatever became of those."""

    inner: UCB
    asked: Integers

    @classmethod
    def start(cls, arms: int) -> Self:
        return cls(UCB.start(arms), np.ones(arms, np.int64))

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm = self.inner.act(releases, t, rng)[0]
        self.asked[arm] *= 3
        return arm, int(self.asked[arm]), NO_LINE


@published("nobody", "")
def forgetful(arms: int, *, epsilon: float) -> Parts:
    """Forgetful.

    Reference: nobody.
    Guarantee: central.
    """
    return Parts(Forgetful.start(arms), Batch.start(arms, epsilon=epsilon))


def test_the_law_finds_an_agent_that_counts_what_was_not_played() -> None:
    law: Any = testing.LAWS["pauses_make_no_stint_longer"]
    with pytest.raises(AssertionError, match=r"a stint of \d+ rounds after 60 with pauses"):
        law(testing.Case(forgetful))
