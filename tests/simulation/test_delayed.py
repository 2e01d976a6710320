"""Simulations whose responses come late or never."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from played import one_for_each_curator

from dpbandits.curators.rounds import OneByOne
from dpbandits.errors import InputError
from dpbandits.parts import copied
from dpbandits.policies import lookup
from dpbandits.simulation import Simulation, loop, simulate
from dpbandits.simulation.delayed import insert_last, remove_first
from dpbandits.simulation.runs import Player, play_once, streams
from dpbandits.simulation.settings import MOST_DELAYED

COINS, MIXED = "0.9,0.6,0.4", "uniform(0,1)+beta(4,1)+choice(0.1,0.4)"


def settings_of(name: str, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"arms": COINS, "horizon": 1500, "checkpoints": 40, "seed": 5}
    if lookup.traits(name).levels is not None:
        given |= {"levels": "choice(0,0.5,1,2)", "options": dict(lookup.traits(name).sample)}
    elif lookup.takes(name, "epsilon"):
        given["epsilon"] = 1.0
    return {**given, **more}


@pytest.mark.parametrize(
    ("name", "arms", "engine"),
    [(name, COINS, "python") for name in lookup.names()]
    + [(name, arms, "compiled") for name in one_for_each_curator() for arms in (COINS, MIXED)],
)
def test_without_delay_and_loss_every_policy_plays_the_undelayed_rounds_bit_for_bit(
    name: str, arms: str, engine: str
) -> None:
    """Against the undelayed loop in plain Python, asked in every round, on the same random numbers.

    Compiled, and on arms of other kinds, one policy for each curator: no other part meets a reward, and agents compiled
    are played by a law of their own.
    """
    delayed = Simulation.of(name, **settings_of(name, arms=arms, delay="constant(0)"))
    plain = Simulation.of(name, **settings_of(name, arms=arms))
    player = Player.of(delayed, engine)
    for run in range(3):
        parts = (plain.environment, OneByOne(copied(plain.policy.curator)), copied(plain.policy.agent))
        pulls = play_once(loop.play, parts, (), plain.marks, True, streams(plain.seed, run))
        assert np.array_equal(player.play(run)[: plain.marks.size], pulls)


#: Where bulk draws take the same random numbers as single ones, what ``simulate`` gives is the same, too.
#: (Not for DP-SE: without delay the arms of an epoch are played in turns, with delay one after the other.)
SAME_NUMBERS = {
    "thompson": COINS,
    "dp-ucb": COINS,
    "dp-ucb-bound": COINS,
    "private-ucb": COINS,
    "ldp-ucb-l": COINS,
    "adap-ucb": MIXED,
    "adap-moss": MIXED,
    "dp-ucb-int": MIXED,
}


@pytest.mark.parametrize("name", SAME_NUMBERS)
def test_a_delay_of_0_is_no_delay(name: str) -> None:
    given = settings_of(name, arms=SAME_NUMBERS[name])
    late, plain = (simulate(name, **given, runs=4, delay=delay) for delay in ("constant(0)", None))
    assert np.array_equal(late.pulls, plain.pulls)


def test_a_delay_below_a_round_is_no_delay_and_a_round_is_one() -> None:
    given = settings_of("thompson")
    plain, short, long = (simulate("thompson", **given, runs=4, delay=f"constant({x})") for x in (0, 0.99, 1))
    assert np.array_equal(plain.pulls, short.pulls)
    assert not np.array_equal(plain.pulls, long.pulls)


@pytest.mark.parametrize("name", ["ldp-ucb-b", "adap-klucb", "heldp-ucb-l", "dp-ucb-int", "thompson"])
@pytest.mark.parametrize(
    "late",
    [
        {"delay": "exponential(30)"},
        {"delay": "lognormal(20,1)", "loss": 0.3},
        {"delay": "exponential(30)", "window": 40},
        {"loss": 0.5, "window": 10},
        {"delay": "constant(100)", "window": 50},
    ],
    ids=str,
)
def test_late_and_lost_responses_run_compiled_as_in_python(name: str, late: dict[str, Any]) -> None:
    given = settings_of(name, horizon=600, **late)
    quick, plain = (simulate(name, **given, runs=3, engine=engine) for engine in ("compiled", "python"))
    assert np.array_equal(quick.pulls, plain.pulls)
    assert (quick.pulls.sum(axis=2) == quick.checkpoints).all()
    assert (np.diff(quick.pulls, axis=1) >= 0).all()


def test_where_nothing_comes_in_time_nothing_is_learned() -> None:
    """Every response is later than its window: a policy that explores arms in turn goes on doing so."""
    trace = simulate("ucb1", arms="0.9,0.1,0.1", horizon=300, runs=5, delay="constant(20)", window=10)
    assert (trace.pulls[:, -1] == 100).all()


def test_delays_cost_regret() -> None:
    """Means of 40 runs, 6 standard errors apart (probability below 1e-8): nothing is known in the first 500 rounds."""
    traces = [
        simulate("ucb1", arms="0.9,0.1", horizon=2000, runs=40, delay=delay)
        for delay in ("constant(0)", "constant(500)")
    ]
    error = math.hypot(*(trace.stderr[-1] for trace in traces))
    assert traces[1].final_regret.mean() > traces[0].final_regret.mean() + 6 * error
    assert traces[1].final_regret.min() >= 0.8 * 200  # half of the rounds until the first response, or nearly


def test_the_numbers_depend_on_the_seed_alone() -> None:
    given = settings_of("adap-ucb", delay="exponential(10)", loss=0.1, window=100)
    one = simulate("adap-ucb", **given, runs=4, workers=1)
    three = simulate("adap-ucb", **given, runs=6, workers=3)
    assert np.array_equal(one.pulls, three.pulls[:4])
    other = simulate("adap-ucb", **{**given, "seed": 6}, runs=4)
    assert not np.array_equal(one.pulls, other.pulls)


def test_a_horizon_with_delays_has_a_limit() -> None:
    longest = Simulation.of("ucb1", arms=COINS, horizon=MOST_DELAYED, delay="constant(3)")
    assert longest.horizon == 10**8
    for late in ({"delay": "constant(0)"}, {"loss": 0.1}, {"window": 3}):
        with pytest.raises(InputError, match=r"horizon must be at most 1e\+08 with a delay, got 100000001") as caught:
            Simulation.of("ucb1", arms=COINS, horizon=MOST_DELAYED + 1, **late)
        assert caught.value.parameter == "horizon"
    assert Simulation.of("ucb1", arms=COINS, horizon=MOST_DELAYED + 1).delay is None


@given(some.lists(some.tuples(some.integers(0, 20), some.booleans()), max_size=80))
def test_what_is_on_its_way_comes_in_the_order_of_time_and_of_decisions(steps: list[tuple[int, bool]]) -> None:
    """Against a sorted list: rows are put in and taken out in any order."""
    heap, waiting, count = np.zeros((len(steps) + 1, 6)), list[tuple[float, float]](), 0
    for number, (comes, takes_out) in enumerate(steps):
        heap[count, :2] = comes, number
        heap[count, 4] = 10.0 * comes + number
        count = insert_last(heap, count)
        waiting = sorted([*waiting, (float(comes), float(number))])
        if takes_out:
            assert tuple(heap[0, :2].tolist()) == waiting.pop(0)
            assert heap[0, 4] == 10.0 * heap[0, 0] + heap[0, 1], "a row was torn apart"
            count = remove_first(heap, count)
        assert count == len(waiting)
    while count:
        assert tuple(heap[0, :2].tolist()) == waiting.pop(0)
        count = remove_first(heap, count)
