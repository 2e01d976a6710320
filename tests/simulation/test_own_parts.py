"""A user's own parts, in simulations: compiled as ours are, and refused by name where they go wrong."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandits.agents import UCB, Doubling
from dpbandits.curators import Batch, Plain
from dpbandits.curators.common import Trusted
from dpbandits.environments import Bernoulli
from dpbandits.environments.mixed import Mixed
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.simulation import compiled, simulate
from dpbandits.types import Floats, Integers, Rng

ENGINES = ("compiled", "python")
ARMS = "0.9,0.6,0.3"


class Wrong(NamedTuple):
    """An agent that answers well until some round, and then with what nobody can play."""

    arms: int
    since: int
    arm: int
    stint: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        if t < self.since:
            return t % self.arms, 1, NO_LINE
        return self.arm, self.stint, NO_LINE


@published("a test")
def wrong(arms: int, *, since: int = 1, arm: int = 0, stint: int = 1, by_stint: bool = False) -> Parts:
    return Parts(Wrong(arms, since, arm, stint), Batch.start(arms, epsilon=1.0) if by_stint else Plain.start(arms))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("delay", [None, "constant(3)"])
@pytest.mark.parametrize("since", [1, 50])
@pytest.mark.parametrize(("arm", "stint"), [(3, 1), (-1, 1), (10**9, 1), (0, 0), (1, -5)])
def test_an_answer_that_nobody_can_play_is_refused_with_the_name_of_the_method(
    engine: str, delay: str | None, since: int, arm: int, stint: int
) -> None:
    with pytest.raises(InputError) as caught:
        simulate(
            wrong,
            arms=ARMS,
            horizon=100,
            runs=2,
            options={"since": since, "arm": arm, "stint": stint},
            delay=delay,
            engine=engine,
        )
    assert caught.value.parameter == "policy"
    assert str(caught.value) == ("policy wrong: Wrong.act must return an arm that exists and a stint of at least 1")


class WrongInTurns(Wrong):
    """The same for an agent whose arms are played in turns."""

    __slots__ = ()

    def turns(self) -> int:
        return 2 if self.stint > -9 else 0


@published("a test", in_turns=True)
def wrong_in_turns(arms: int, *, since: int = 1, arm: int = 0, stint: int = 1) -> Parts:
    return Parts(WrongInTurns(arms, since, arm, stint), Batch.start(arms, epsilon=1.0))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("since", [1, 2, 51, 52])  # the first and the second turn of an epoch
@pytest.mark.parametrize(("arm", "stint"), [(3, 1), (-1, 1), (10**9, 1), (0, 0), (1, -5), (0, -9)])
def test_the_same_in_turns(engine: str, since: int, arm: int, stint: int) -> None:
    given = {"since": since, "arm": arm, "stint": stint}
    with pytest.raises(InputError) as caught:
        simulate(wrong_in_turns, arms=ARMS, horizon=100, runs=2, options=given, engine=engine)
    rule = "turns must return at least 1"
    if stint > -9:
        rule = "act must return an arm that exists and a stint of at least 1"
    assert str(caught.value) == f"policy wrong-in-turns: WrongInTurns.{rule}"


def test_an_agent_whose_arms_are_played_in_turns_says_how_many() -> None:
    @published("a test", in_turns=True)
    def without_turns(arms: int) -> Parts:
        return Parts(Wrong(arms, 1, 0, 1), Plain.start(arms))

    with pytest.raises(InputError, match="the agent of without-turns must have a method turns, and a Wrong has none"):
        without_turns(2)


class Allocating(NamedTuple):
    """An agent that makes arrays whenever it is asked."""

    arms: int
    seen: Integers

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        scores = np.zeros(self.arms)
        for arm in range(self.arms):
            self.seen[arm] += 1
            scores[arm] = releases.mean(arm) + 1.0 / releases.samples(arm, 0) if releases.ready(arm, 0.0) else 10.0
        noisy = scores + 0.1 * np.array([rng.random() for _ in range(self.arms)])
        return int(np.argmax(noisy)), 1 + int(np.sum(noisy > 0.5)), NO_LINE


class ListingFields(NamedTuple):
    last: Floats  # (arms, 4)
    counts: Integers


class Listing(Trusted, ListingFields):
    """A curator that makes arrays whenever it is told something: the mean of the last few rewards."""

    __slots__ = ()

    def guarantee(self) -> Guarantee:
        return Guarantee.none()

    def add(self, arm: int, response: float, level: float, rng: Rng) -> None:
        rolled = np.roll(self.last[arm], 1)
        rolled[0] = response
        self.last[arm] = rolled
        self.counts[arm] += 1

    def mean(self, arm: int) -> float:
        return float(np.mean(self.last[arm]))


@published("a test")
def allocating_agent(arms: int) -> Parts:
    return Parts(Allocating(arms, np.zeros(arms, np.int64)), Plain.start(arms))


@published("a test")
def allocating_inside_doubling(arms: int) -> Parts:
    agent = Doubling.start(arms, Allocating(arms, np.zeros(arms, np.int64)))
    return Parts(agent, Batch.start(arms, epsilon=1.0))


@published("a test")
def allocating_curator(arms: int) -> Parts:
    return Parts(UCB.start(arms), Listing(np.zeros((arms, 4)), np.zeros(arms, np.int64)))


@published("a test")
def allocating_both(arms: int) -> Parts:
    curator = Listing(np.zeros((arms, 4)), np.zeros(arms, np.int64))
    return Parts(Allocating(arms, np.zeros(arms, np.int64)), curator)


@pytest.mark.parametrize("delay", [None, "exponential(3)"])
@pytest.mark.parametrize("factory", [allocating_agent, allocating_inside_doubling, allocating_curator, allocating_both])
def test_parts_that_make_arrays_run_compiled_as_in_python(factory: lookup.Factory, delay: str | None) -> None:
    settings: dict[str, Any] = {"arms": ARMS, "horizon": 400, "runs": 3, "delay": delay, "checkpoints": 50}
    quick, plain = (simulate(factory, engine=engine, **settings) for engine in ENGINES)
    assert np.array_equal(quick.pulls, plain.pulls)
    assert len(np.unique(quick.pulls[:, -1], axis=0)) > 1, "all runs are the same: nothing was seen"


def test_memory_that_parts_make_is_given_back() -> None:
    """References to arrays are counted where users' parts make them: as many are freed as were made."""
    runtime: Any = importlib.import_module("numba.core.runtime")
    runtime._nrt_python.memsys_enable_stats()
    simulate(allocating_agent, arms=ARMS, horizon=1000, runs=1)
    before = runtime.rtsys.get_allocation_stats()
    simulate(allocating_agent, arms=ARMS, horizon=100_000, runs=1, checkpoints=5)
    after = runtime.rtsys.get_allocation_stats()
    assert after.alloc - before.alloc > 100_000
    assert after.alloc - before.alloc == after.free - before.free


class Turns(NamedTuple):
    """An agent of a user's, with a helper of its own."""

    arms: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return helper(t) % self.arms, 1, NO_LINE


def helper(t: int) -> int:
    return 3 * t + 1


@published("a test")
def turns_inside_doubling(arms: int) -> Parts:
    return Parts(Doubling.start(arms, Turns(arms)), Batch.start(arms, epsilon=1.0))


def test_a_users_agent_inside_one_of_ours_runs_compiled_as_in_python() -> None:
    quick, plain = (simulate(turns_inside_doubling, arms=ARMS, horizon=3000, runs=3, engine=e) for e in ENGINES)
    assert np.array_equal(quick.pulls, plain.pulls)


@pytest.mark.parametrize("quick", [False, True])
def test_a_distribution_without_a_branch_is_an_error_and_not_a_number(quick: bool) -> None:
    from dpbandits.environments.distributions import Beta, Normal

    environment = Mixed.start([Beta(4, 1), Normal(0.5, 1)])
    environment.codes[1] = 99

    def one(environment: Any, arm: int, rng: Any) -> Any:
        return environment.draw(arm, rng)

    draw = compiled.compiled(one, environment) if quick else one
    rng = np.random.default_rng(0)
    assert 0.0 < draw(environment, 0, rng) < 1.0
    with pytest.raises(ValueError, match="no branch draws from a distribution with this code"):
        draw(environment, 1, rng)


def test_an_engine_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="engine 'pyton' is unknown: did you mean python"):
        simulate("ucb1", arms=ARMS, horizon=100, engine="pyton")


def test_coins_pay_what_they_should_in_every_order() -> None:
    environment = Bernoulli.start([1.0, 0.0, 0.5]).reorder(np.array([2, 0, 1]))
    rng = np.random.default_rng(0)
    assert [environment.draw(1, rng), environment.draw(2, rng)] == [1.0, 0.0]
    assert environment.total(1, 10, rng) == 10.0
