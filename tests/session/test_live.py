"""The rules of a live run, one by one, on agents and curators whose answers are known."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandits import policies
from dpbandits.agents import UCB, Doubling
from dpbandits.curators import Batch, Plain
from dpbandits.errors import ChoiceError, InputError
from dpbandits.live import Live
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.types import Rng

RNG = np.random.default_rng(0)


class Script(NamedTuple):
    """An agent that plays arms 0, 1, 0, 1 .. in stints of one length, with one line."""

    stint: int
    line: float

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return (t // 100) % 2, self.stint, self.line


@published("a test")
def scripted(arms: int, *, stint: int = 3, line: float = NO_LINE, by_stint: bool = True) -> Parts:
    return Parts(Script(stint, line), Batch.start(arms, epsilon=1e9) if by_stint else Plain.start(arms))


def receive(live: Live, number: int, response: float | None = 1.0, now: float = 0.0) -> str:
    return live.receive(number, response, 0.0, now, RNG)


def decide(live: Live, now: float = 0.0) -> int:
    return live.decide(now, RNG, RNG).number


def test_a_stint_is_closed_by_as_many_responses_as_it_asked_for() -> None:
    live = Live(scripted(2, stint=3))
    numbers = [decide(live) for _ in range(5)]  # two more than asked for: responses are still out
    assert [live.open[number].stint for number in numbers] == [1] * 5
    assert [receive(live, number) for number in (5, 1)] == ["used", "used"]
    assert live.version == 0
    assert receive(live, 3, 0.5) == "used"
    assert live.version == 1
    assert live.policy.curator.samples(0, 0) == 3
    assert live.policy.curator.mean(0) == pytest.approx(2.5 / 3, abs=1e-6)
    assert [receive(live, number) for number in (2, 4)] == ["late", "late"], "what comes after the closing is not used"
    assert live.desk.late[0] == 2
    assert live.open[decide(live)].stint == 2


def test_the_surplus_of_a_stint_does_not_enter_the_next_one() -> None:
    live = Live(scripted(2, stint=2))
    numbers = [decide(live) for _ in range(3)]
    for number in numbers[:2]:
        receive(live, number)
    following = decide(live)
    assert receive(live, numbers[2], 0.0) == "late"
    assert live.policy.curator.raw_counts.tolist() == [0, 0]  # type: ignore[attr-defined]
    assert receive(live, following, 0.25) == "used"
    assert live.policy.curator.raw_sums.tolist() == [0.25, 0.0]  # type: ignore[attr-defined]


def test_the_window_of_a_stint_begins_with_its_last_decision() -> None:
    """Closed over what came, by the next call that tells the time."""
    live = Live(scripted(2, stint=2), window=10.0)
    first = decide(live, 0.0)
    assert receive(live, first, 1.0, 9.0) == "used"
    decide(live, 9.5)
    live.tick(19.5, RNG)
    assert live.version == 0
    live.tick(19.6, RNG)
    assert live.version == 1
    assert live.policy.curator.samples(0, 0) == 1


def test_elsewhere_a_stint_is_a_number_of_decisions() -> None:
    live = Live(scripted(2, stint=3, by_stint=False))
    assert [live.open[decide(live)].stint for _ in range(7)] == [1, 1, 1, 2, 2, 2, 3]
    assert receive(live, 1) == "used"
    assert receive(live, 7) == "used"
    assert live.version == 2


def test_a_line_ends_a_stint_when_the_mean_falls_to_it() -> None:
    live = Live(scripted(2, stint=50, line=0.5, by_stint=False))
    one, two, three = (decide(live) for _ in range(3))
    receive(live, one, 1.0)
    assert live.open[decide(live)].stint == 1
    receive(live, two, 0.0)  # the mean is 1/2: no longer above
    assert live.open[decide(live)].stint == 2
    receive(live, three, 0.0)  # of the arm whose new stint is open, though of an earlier one: the mean is 1/3
    assert live.open[decide(live)].stint == 3


def test_what_is_waited_for_is_counted_by_arm() -> None:
    live = Live(policies.ucb1(2), window=5.0)
    numbers = [decide(live, 0.0) for _ in range(4)]
    arms = [live.open[number].arm for number in numbers]
    assert list(live.desk.out) == [arms.count(0), arms.count(1)]
    receive(live, numbers[0], 1.0, 1.0)
    receive(live, numbers[1], None, 1.0)
    live.tick(6.0, RNG)
    assert list(live.desk.out) == [0, 0]
    assert not live.open
    assert live.expired == set(numbers[2:])


@pytest.mark.parametrize("number", [0, 4, -1, 10**9])
def test_a_number_that_was_never_given_out_is_refused(number: int) -> None:
    live = Live(policies.ucb1(2))
    for _ in range(3):
        decide(live)
    with pytest.raises(InputError, match=f"decision must be one that waits for a response, got {number}"):
        receive(live, number)


class Wrong(NamedTuple):
    """An agent whose answer nobody can play."""

    arm: int
    stint: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return self.arm, self.stint, NO_LINE


@published("a test")
def wrong(arms: int, *, arm: int, stint: int) -> Parts:
    return Parts(Wrong(arm, stint), Plain.start(arms))


@pytest.mark.parametrize(("arm", "stint"), [(2, 1), (-1, 1), (0, 0)])
def test_an_answer_that_nobody_can_play_is_an_error_and_changes_nothing(arm: int, stint: int) -> None:
    live = Live(wrong(2, arm=arm, stint=stint))
    before = live.freeze()
    with pytest.raises(ChoiceError, match="act must return an arm that exists and a stint of at least 1"):
        decide(live)
    assert live.freeze() == before


def test_freezing_keeps_what_is_open_expired_and_infinite() -> None:
    live = Live(scripted(2, stint=2), window=10.0)
    for now in (0.0, 1.0):
        decide(live, now)
    assert live.freeze()["desk"]["closing"] == [11.0]
    live.tick(10.5, RNG)
    thawed = Live(scripted(2, stint=2), window=10.0)
    thawed.thaw(live.freeze())
    assert (thawed.open, thawed.expired) == (live.open, live.expired) == ({2: live.open[2]}, {1})
    fresh = Live(scripted(2, stint=2))
    decide(fresh)
    assert fresh.freeze()["desk"]["closing"] == ["inf"]
    again = Live(scripted(2, stint=2))
    again.thaw(fresh.freeze())
    assert again.desk.closing[0] == math.inf
    assert again.freeze() == fresh.freeze()


def test_an_index_may_be_infinite_and_a_sum_may_not() -> None:
    live = Live(policies.dp_imed(2, epsilon=1.0))
    agent: Any = live.policy.agent
    agent.inner.indices[1] = math.inf
    record = json.loads(json.dumps(live.freeze(), allow_nan=False))
    thawed = Live(policies.dp_imed(2, epsilon=1.0))
    thawed.thaw(record)
    agent = thawed.policy.agent
    assert agent.inner.indices.tolist() == [0.0, math.inf]
    for inner, name, wrong in (
        (record["agent"]["inner"], "indices", "nan"),
        (record["curator"], "raw_sums", "inf"),
        (record["curator"], "raw_sums", None),
    ):
        before, inner[name] = inner[name], [0.0, wrong]
        with pytest.raises(InputError, match="damaged"):
            Live(policies.dp_imed(2, epsilon=1.0)).thaw(record)
        inner[name] = before


def test_a_live_run_starts_from_a_fresh_policy() -> None:
    policy = scripted(2)
    policy.curator.add(0, 1.0, 0.0, RNG)
    assert Live(policy).policy.curator.raw_counts.tolist() == [0, 0]  # type: ignore[attr-defined]


def test_an_agent_with_parts_inside_is_played_live() -> None:
    @published("a test")
    def doubled(arms: int) -> Any:
        return Parts(Doubling.start(arms, UCB.start(arms)), Batch.start(arms, epsilon=1e9))

    live, lengths = Live(doubled(2)), dict[int, int]()
    for _ in range(200):
        number = decide(live)
        decision = live.open[number]
        lengths[decision.stint] = lengths.get(decision.stint, 0) + 1
        receive(live, number, float(decision.arm == 0))
    finished = list(lengths.values())[:-1]
    assert {length & (length - 1) for length in finished} == {0}, "a stint is not a power of two"
    assert max(finished) >= 32
