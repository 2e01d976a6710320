"""The state of an experiment: the rules of ``live``, without the decisions that are open."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import numpy as np
import pytest

from dpbandits import policies
from dpbandits.changing import allows_more_arms
from dpbandits.errors import InputError
from dpbandits.exact import SystemNoise
from dpbandits.live import Live
from dpbandits.policies import lookup
from dpbandits.service.state import LiveState, extended

POLICIES = ["ldp-ucb-b", "ldp-ucb-l", "heldp-ucb-b", "adap-ucb", "dp-se", "dp-ucb-bound", "dp-ucb-int", "thompson"]


class NoNoise:
    """A source that fails when it is used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"noise was drawn: {name}")


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("window", [math.inf, 64.0])
def test_it_chooses_as_a_live_run_does(name: str, window: float) -> None:
    """The same seeds, the same responses at the same times: the same arms, whatever comes late or never.

    Decisions that are made in the same part of a window are waited for until the last one's window is over. Here each
    part has one decision, so there is no difference to ``live``.
    """
    policy = lookup.sample(name, arms=3, horizon=5000)
    live, state = Live(policy, window=window), LiveState(policy, window)
    noises = [np.random.default_rng(1), np.random.default_rng(1)]
    choices = [np.random.default_rng(2), np.random.default_rng(2)]
    chance = random.Random(name)
    open_: list[tuple[int, int, int, float]] = []
    for step in range(400):
        now = 2.0 * step
        if chance.random() < 0.6 or not open_:
            made = live.decide(now, noises[0], choices[0])
            arm, stint = state.decide(now, noises[1], choices[1])
            assert (arm, stint) == (made.arm, made.stint)
            open_.append((made.number, made.arm, made.stint, now))
        else:
            number, arm, stint, decided = open_.pop(chance.randrange(len(open_)))
            if chance.random() < 0.2:
                continue  # lost
            value = float(chance.randrange(2))
            status = live.receive(number, value, 1.0, now, noises[0])
            used = state.receive(arm, stint, decided, value, 1.0, now, noises[1])
            assert (status == "used") is used
        if step % 50 == 25:
            frozen = msgspec.json.decode(msgspec.json.encode(state.freeze()))
            state = LiveState(policy, window)
            state.thaw(frozen)
    assert state.version == live.version


@pytest.mark.parametrize("name", ["adap-ucb", "dp-se", "dp-ucb-bound", "ldp-ucb-b"])
def test_a_deputy_never_draws(name: str) -> None:
    state = LiveState(lookup.sample(name, arms=3), window=10.0)
    noise, rng = SystemNoise(), np.random.default_rng(0)
    arm, stint = state.decide(0.0, noise, rng)
    state.receive(arm, stint, 0.0, 1.0, 1.0, 1.0, noise)
    state.open(1.0, noise, rng)
    state.deputy = True
    for now in (2.0, 5.0, 50.0, 500.0):
        state.decide(now, NoNoise(), rng)
        state.peek(now, NoNoise(), rng)
        state.tick(now, NoNoise())


def test_a_copy_shares_no_memory() -> None:
    state = LiveState(policies.adap_ucb(2, epsilon=1.0), 60.0)
    noise, rng = SystemNoise(), np.random.default_rng(0)
    before = state.freeze()
    copy = state.copy()
    arm, stint = copy.decide(0.0, noise, rng)
    copy.receive(arm, stint, 0.0, 1.0, 0.0, 1.0, noise)
    assert state.freeze() == before
    assert copy.released[0].responses == 1
    assert state.released == []


def test_memory_does_not_grow_with_traffic() -> None:
    state = LiveState(policies.ldp_ucb_b(2, epsilon=1.0), 100.0)
    noise, rng = SystemNoise(), np.random.default_rng(0)
    for step in range(5000):
        state.decide(float(step), noise, rng)
    assert len(state.waiting) <= 34
    assert sum(state.desk.out) <= 105


@pytest.mark.parametrize("name", lookup.names())
def test_an_arm_is_added_or_refused_with_a_reason(name: str) -> None:
    """Every statistic of the old arms stays; and where an arm is added, the policy plays it."""
    state = LiveState(lookup.sample(name, arms=3), 1000.0)
    noise, rng = SystemNoise(), np.random.default_rng(0)
    for step in range(30):
        arm, stint = state.decide(float(step), noise, rng)
        state.receive(arm, stint, float(step), 1.0, 1.0, float(step), noise)
    if not allows_more_arms(state.policy):
        with pytest.raises(InputError, match="arms cannot be added"):
            extended(state)
        return
    made = extended(state)
    assert [made.curator.mean(arm) for arm in range(3) if state.curator.ready(arm, 0.0)] == [
        state.curator.mean(arm) for arm in range(3) if state.curator.ready(arm, 0.0)
    ]
    for step in range(30, 60):
        arm, stint = made.decide(float(step), noise, rng)
        made.receive(arm, stint, float(step), 1.0, 1.0, float(step), noise)
    assert made.version >= state.version
