"""The rules of live runs, written a second time without any care for speed, and compared decision by decision."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dpbandits.live import Live
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.protocols import NO_LINE
from dpbandits.types import Rng

ARMS = 3
LEVELS = (0.0, 1.0, 2.0)


@dataclass
class Stint:
    arm: int
    asked: int
    line: float
    times: list[float] = field(default_factory=list)  # of its decisions, since it was last begun
    responses: int = 0


@dataclass
class Made:
    """A decision."""

    stint: Stint
    time: float
    answered: bool = False


class Counted:
    """What an agent sees of a curator where decisions that wait for a response count."""

    def __init__(self, naive: Naive) -> None:
        self.naive, self.inner = naive, naive.curator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def samples(self, arm: int, ahead: int) -> float:
        return float(self.inner.samples(arm, ahead + self.naive.waiting(arm)))

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return float(self.inner.width(arm, exponent, ahead + self.naive.waiting(arm)))


class Naive:
    """A running policy that keeps every decision that was ever made, and goes through all of them."""

    def __init__(self, policy: Policy, window: float) -> None:
        fresh = policy.fresh()
        self.agent: Any = fresh.agent
        self.curator: Any = fresh.curator
        self.window, self.now = window, 0.0
        self.made: list[Made] = []
        self.stint: Stint | None = None
        counted = self.curator.counts_ahead and window < math.inf and not policy.traits.stops
        self.releases: Any = Counted(self) if counted else self.curator

    def waiting(self, arm: int) -> int:
        """How many decisions for this arm wait for a response now."""
        return sum(
            one.stint.arm == arm and not one.answered and self.now <= one.time + self.window for one in self.made
        )

    def tick(self, now: float, noise: Rng) -> None:
        self.now, stint = now, self.stint
        if not self.curator.by_stint or stint is None or len(stint.times) < stint.asked:
            return
        if now > stint.times[stint.asked - 1] + self.window:
            if stint.responses > 0:
                self.close(noise)
            else:
                stint.times.clear()

    def close(self, noise: Rng) -> None:
        assert self.stint is not None
        self.curator.close(self.stint.arm, noise)
        self.stint = None

    def decide(self, now: float, noise: Rng, choices: Rng) -> int:
        self.tick(now, noise)
        if self.stint is None:
            arm, asked, line = self.agent.act(self.releases, len(self.made) + 1, choices)
            self.stint = Stint(int(arm), int(asked), float(line))
        stint = self.stint
        stint.times.append(now)
        self.made.append(Made(stint, now))
        if not self.curator.by_stint and len(stint.times) == stint.asked:
            self.stint = None
        return stint.arm

    def receive(self, number: int, response: float | None, level: float, now: float, noise: Rng) -> str:
        self.tick(now, noise)
        one = self.made[number - 1]
        one.answered = True
        if now > one.time + self.window:
            return "late"
        if response is None:
            return "missing"
        if self.curator.by_stint and one.stint is not self.stint:
            return "late"
        arm = one.stint.arm
        self.curator.add(arm, response, level, noise)
        if self.curator.by_stint:
            one.stint.responses += 1
            if one.stint.responses == one.stint.asked:
                self.close(noise)
        elif self.stint is not None and self.stint.arm == arm and self.is_below(self.stint):
            self.stint = None
        return "used"

    def is_below(self, stint: Stint) -> bool:
        """Whether the arm's mean has come down to the line of a stint that has one."""
        return stint.line > NO_LINE and bool(self.curator.mean(stint.arm) <= stint.line)


@pytest.mark.parametrize("name", lookup.names())
@pytest.mark.parametrize("seed", range(6))
def test_live_runs_decide_as_the_naive_ones(name: str, seed: int) -> None:
    """With random delays, losses, refusals, windows and orders; the live run is also frozen and thawed in between."""
    chance = random.Random(f"{name} {seed}")
    has_levels = lookup.traits(lookup.find(name)).levels is not None
    policy = lookup.sample(name, arms=ARMS, horizon=1000)
    window = chance.choice([math.inf, 0.5, 3.0, 20.0])
    mean_delay, loss = chance.choice([0.0, 0.3, 5.0, 30.0]), chance.choice([0.0, 0.1, 0.6, 0.95])
    live, naive = Live(policy, window=window), Naive(policy, window)
    noise, choices = ([np.random.default_rng([seed, stream]) for _ in range(2)] for stream in range(2))
    device = np.random.default_rng([seed, 2])
    now = 0.0
    coming: list[tuple[float, int, float | None, float]] = []
    for _ in range(200):
        now += chance.choice([0.0, 0.0, 0.25, 1.0])
        due = sorted(one for one in coming if one[0] <= now)
        coming = [one for one in coming if one[0] > now]
        for time, number, response, level in due:
            status = live.receive(number, response, level, time, noise[0])
            assert status == naive.receive(number, response, level, time, noise[1])
        if chance.random() < 0.2:
            record = json.loads(json.dumps(live.freeze(), allow_nan=False))
            live = Live(policy, window=window)
            live.thaw(record)
        decision = live.decide(now, noise[0], choices[0])
        assert decision.arm == naive.decide(now, noise[1], choices[1])
        assert decision.number == len(naive.made)
        level = chance.choice(LEVELS) if has_levels else 0.0
        reward = float(chance.random() < 0.3 + 0.2 * decision.arm)
        sent: float | None = float(policy.curator.respond(reward, level, device))
        if sent is not None and math.isnan(sent):
            sent = None  # a user at level 0 sends nothing
        if chance.random() < loss:
            if chance.random() < 0.7:
                continue
            sent = None
        delay = chance.expovariate(1 / mean_delay) if mean_delay else 0.0
        if chance.random() < 0.1 and window < math.inf:
            delay = window  # just in time
        coming.append((now + delay, decision.number, sent, level))
    for one, other in (noise, choices):
        assert one.bit_generator.state == other.bit_generator.state
