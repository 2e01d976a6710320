"""Lazy Thompson sampling in drawn stints: the distribution of its choices is that of the agent asked in every round."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.stats import beta, chi2, ks_2samp

from dpbandits import policies
from dpbandits.agents import LazyThompson, skip_ahead
from dpbandits.agents.lazy import NOISE
from dpbandits.agents.skip_thompson import SkippingThompson
from dpbandits.curators import Batch, Interval, Lazy, LocalBernoulli, Plain
from dpbandits.environments import Bernoulli
from dpbandits.numerics import beta_deficit, log_beta_peak
from dpbandits.protocols import NO_LINE, Environment
from dpbandits.simulation import compiled, loop
from dpbandits.testing.case import generators, player
from dpbandits.types import Floats, Integers, Rng

FAILURE = 1e-6  # probability of each comparison to fail though all is right


class Frozen(Lazy):
    """A curator whose releases never change."""

    __slots__ = ()

    def absorb(self, environment: Environment, arm: int, n: int, line: float, rewards: Rng, noise: Rng) -> int:
        return n


class ForEver(Frozen):
    """A curator whose releases never change, and which says so."""

    __slots__ = ()

    def due(self, arm: int) -> int:
        return 1 << 60


#: Samples, means and epsilon of a release for each arm.
RELEASES: dict[str, tuple[list[int], list[float], float]] = {
    "a leader": ([4096, 64, 64], [0.6, 0.2, 0.3], 2.0),
    "a leader and rare rivals": ([65536, 512, 256], [0.5, 0.35, 0.25], 20.0),
    "two equal": ([1024, 1024], [0.5, 0.5], 1.0),
    "three near": ([1024, 512, 256, 128], [0.5, 0.48, 0.45, 0.2], 5.0),
    "raised to 1": ([16, 32, 64, 128], [0.5, 0.4, 0.9, 0.7], 0.5),
    "one raised to 1": ([8, 2048, 2048], [0.5, 0.9, 0.85], 0.8),
    "few samples": ([1, 2, 4], [0.9, -0.3, 0.4], 3.0),
    "beyond [0, 1]": ([64, 64, 32], [1.3, 0.9, -0.2], 50.0),
    "at 0": ([1024, 1024, 8], [-0.1, -0.2, -0.5], 1e6),
    "a leader and many rivals": ([4096] + 7 * [64], [0.6, *np.linspace(0.42, 0.53, 7).tolist()], 1e6),
    "many samples": ([1 << 20, 1 << 20, 1 << 14], [0.7, 0.699, 0.695], 300.0),
}


def chances(counts: Floats, raised: Floats) -> Floats:
    """The probability of each arm's draw to be the largest: an integral over its quantiles u = 1 / (1 + e^-z)."""
    z = np.linspace(-60.0, 60.0, 1201)
    u, rest = 1.0 / (1.0 + np.exp(-z)), 1.0 / (1.0 + np.exp(z))
    laws = [beta(p * n + 1.0, (1.0 - p) * n + 1.0) for n, p in zip(counts, raised, strict=True)]
    found = []
    for arm, law in enumerate(laws):
        points = np.where(z < 0.0, law.ppf(u), law.isf(rest))
        below = np.prod([other.cdf(points) for j, other in enumerate(laws) if j != arm], axis=0)
        found.append(float((below * u * rest).sum() * (z[1] - z[0])))
    assert math.isclose(sum(found), 1.0, rel_tol=1e-6), found
    return np.array(found)


def expected(counts: list[int], means: list[float], epsilon: float, rounds: int) -> Floats:
    """The expected number of choices of each arm: chances of some rounds, and a spline in log t between them."""
    n, mean = np.array(counts, float), np.array(means)
    some = np.unique(np.geomspace(1, rounds, 120).round())
    each = [chances(n, np.clip(mean + NOISE * math.log(t) / (epsilon * n), 0.0, 1.0)) for t in some]
    return np.asarray(CubicSpline(np.log(some), each)(np.log(np.arange(1, rounds + 1))).sum(axis=0))


def played(curator: Any, marks: Integers, seed: int) -> Integers:
    """Pulls at these rounds."""
    arms = len(curator.counts)
    agent, environment = skip_ahead(LazyThompson.start(arms), curator), Bernoulli.start([0.5] * arms)
    assert isinstance(agent, SkippingThompson)
    pulls = np.zeros((len(marks), arms), np.int64)
    compiled.compiled(loop.play, environment, curator, agent)(
        environment, curator, agent, marks, pulls, *generators(seed)
    )
    return pulls


def released(kind: type[Lazy], counts: list[int], means: list[float], epsilon: float) -> Lazy:
    curator = kind.start(len(counts), epsilon=epsilon)
    curator.counts[:], curator.means[:] = counts, means
    return curator


@pytest.mark.parametrize("kind", [Frozen, ForEver])
@pytest.mark.parametrize("name", RELEASES)
def test_choices_have_the_exact_probabilities(name: str, kind: type[Lazy]) -> None:
    """Chi-square of the choices in 200 000 rounds, in which raised means grow, against numerical integrals.

    Rounds are independent, with probabilities that change, so the counts vary no more than multinomial ones. One kind
    of releases has its arms in the opposite order.
    """
    rounds = 200_000
    counts, means, epsilon = RELEASES[name]
    if kind is ForEver:
        counts, means = counts[::-1], means[::-1]
    seen = played(released(kind, counts, means, epsilon), np.array([rounds]), 5)[0]
    hoped = expected(counts, means, epsilon, rounds)
    common = hoped >= 10.0
    statistic = float(((seen - hoped)[common] ** 2 / hoped[common]).sum())
    assert statistic < chi2.isf(FAILURE, max(int(common.sum()) - 1, 1))
    assert seen[~common].sum() <= 10.0 * (~common).sum() + 60.0  # 10 expected: 70 with probability 1e-30


@pytest.mark.parametrize("name", ["a leader", "a leader and many rivals", "three near", "raised to 1", "beyond [0, 1]"])
def test_rounds_are_independent(name: str) -> None:
    """Of two rounds in a row, both choices together: chi-square of 100 000 pairs, where raised means do not change.

    And the number of rounds between two choices of the rarest arm is geometric (Kolmogorov-Smirnov).
    """
    counts, means, _ = RELEASES[name]
    rounds, sharp = 200_000, 1e9
    pulls = played(released(ForEver, counts, means, sharp), np.arange(1, rounds + 1), 6)
    choices = np.diff(pulls, axis=0, prepend=0).argmax(axis=1)
    law = chances(np.array(counts, float), np.clip(means, 0.0, 1.0))
    hoped = np.outer(law, law) * rounds / 2
    seen = np.zeros_like(hoped)
    np.add.at(seen, (choices[0::2], choices[1::2]), 1)
    common = hoped >= 10.0
    statistic = float(((seen - hoped)[common] ** 2 / hoped[common]).sum())
    assert statistic < chi2.isf(FAILURE, max(int(common.sum()) - 1, 1))
    rare = int(np.where(law * rounds > 200.0, law, 1.0).argmin())
    gaps = np.diff(np.flatnonzero(choices == rare))
    drawn = np.random.default_rng(7).geometric(law[rare], gaps.size)
    assert ks_2samp(gaps, drawn, method="asymp").pvalue >= FAILURE


@pytest.mark.parametrize(
    ("epsilon", "means"), [(0.3, [0.9, 0.6, 0.3]), (2.0, [0.6, 0.5, 0.5]), (50.0, [0.9, 0.1, 0.8])]
)
def test_whole_runs_have_the_law_of_the_plain_loop(epsilon: float, means: list[float]) -> None:
    """Pulls of each arm at two checkpoints, 1500 runs each way (Kolmogorov-Smirnov)."""
    environment, marks, pulls = Bernoulli.start(means), np.array([300, 6000]), []
    policy = policies.lazy_dp_ts(arms=3, epsilon=epsilon)
    for quick in (False, True):
        run = player(policy, environment, skipping=quick, bulk=quick)
        pulls.append(
            np.array([run(policy.fresh(), environment, marks, generators(n, int(quick))) for n in range(1500)])
        )
    for mark in range(2):
        for arm in range(3):
            found = ks_2samp(pulls[0][:, mark, arm], pulls[1][:, mark, arm], method="asymp")
            assert found.pvalue >= FAILURE, (marks[mark], arm, found)


def test_no_stint_is_longer_than_the_release_stands() -> None:
    """In 20 runs of 10 000 rounds, in plain Python."""
    longest = 0
    for seed in range(20):
        rng, environment = np.random.default_rng([12, seed]), Bernoulli.start([0.9, 0.5, 0.4])
        policy = policies.lazy_dp_ts(arms=3, epsilon=5.0)
        agent, t = skip_ahead(policy.agent, policy.curator), 1
        curator: Any = policy.curator
        while t < 10_000:
            arm, stint, _ = agent.act(curator, t, rng)
            assert 1 <= stint <= curator.due(arm)
            curator.absorb(environment, arm, stint, NO_LINE, rng, rng)
            t, longest = t + stint, max(longest, stint)
    assert longest > 500


def test_a_tail_is_above_the_density_of_every_round_until_the_next_look() -> None:
    """At 20 points beyond the cut, in 5 rounds, after looks at 400 random releases."""
    rng, tried = np.random.default_rng(8), 0
    for _ in range(400):
        arms = int(rng.integers(2, 6))
        counts = [1 << int(k) for k in rng.integers(0, 22, arms)]
        epsilon = float(10.0 ** rng.uniform(-2, 3))
        curator = released(ForEver, counts, rng.uniform(-0.2, 1.2, arms).tolist(), epsilon)
        agent: Any = skip_ahead(LazyThompson.start(arms), curator)
        agent.look(curator, int(10.0 ** rng.uniform(0, 9)), rng)
        cut, alone = float(agent.cut[0]), int(agent.alone[0])
        for arm in range(arms):
            if arm != alone and agent.rates[arm] < 0.0:
                continue
            for t in np.linspace(int(agent.first[0]), int(agent.until[0]), 5).round():
                n, mean = float(counts[arm]), float(curator.means[arm])
                raised = min(max(mean + NOISE * math.log(t) / (epsilon * n), 0.0), 1.0)
                for step in np.geomspace(1e-3, 30.0, 20) / agent.falls[arm]:
                    y = cut - step if arm == alone else cut + step
                    if 0.0 < y < 1.0 and agent.heights[arm] > -500.0:
                        density = beta.logpdf(y, raised * n + 1.0, (1.0 - raised) * n + 1.0)
                        tail = agent.heights[arm] - agent.falls[arm] * step
                        assert density <= tail + 1e-7, (arm, t, y)  # the reference has an error of about 1e-8
                        tried += 1
    assert tried > 10_000


def test_densities_are_accurate() -> None:
    """Against 40 digits, at up to 10^12 samples, within 8 deviations of the mode and anywhere."""
    rng = np.random.default_rng(9)
    for case in range(2000):
        n = float(10.0 ** rng.uniform(0, 12))
        p = float(rng.choice([rng.random(), 10.0 ** rng.uniform(-9, 0), 1.0 - 10.0 ** rng.uniform(-9, 0), 0.0, 1.0]))
        near = p + rng.uniform(-8.0, 8.0) * math.sqrt(p * (1.0 - p) * n + 1.0) / n
        x = min(max(near if case % 2 else rng.random(), 1e-12), 1.0 - 1e-12)
        with mpmath.workdps(40):
            a, b = mpmath.mpf(p) * n + 1, (1 - mpmath.mpf(p)) * n + 1
            exact = -mpmath.log(mpmath.beta(a, b)) + (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log(1 - mpmath.mpf(x))
            error = abs(float(exact - (log_beta_peak(n, p) - beta_deficit(n, p, x))))
        assert error <= 1e-14 * (5.0 + abs(float(exact)) + n * abs(x - p)), (n, p, x)


@pytest.mark.parametrize("curator", [Batch.start(2, epsilon=1.0), Plain.start(2), LocalBernoulli.start(2, epsilon=1.0)])
def test_where_releases_have_no_schedule_every_round_is_asked_for(curator: Any) -> None:
    agent = LazyThompson.start(2)
    assert skip_ahead(agent, curator) is agent


@pytest.mark.parametrize(
    "curator",
    [
        Lazy.start(2, epsilon=0.5),
        Interval.start(2, epsilon=30.0, delta=1e-2, v=1.1, schedule="constant"),
        Interval.start(2, epsilon=30.0, delta=1e-2, v=1.1, schedule="constant", cover_noise=True),
    ],
)
def test_releases_stand_until_they_are_due(curator: Any) -> None:
    """Mean, samples and widths, after each of 3000 rewards that follow the first release."""
    rng = np.random.default_rng(10)

    def seen() -> tuple[float, ...]:
        return curator.mean(0), curator.samples(0, 0), curator.width(0, 1.0, 0), curator.width(0, 9.0, 0)

    while not curator.ready(0, 9.0):
        curator.add(0, 1.0, 0.0, rng)
    left, before, releases = curator.due(0), seen(), 0
    for _ in range(3000):
        curator.add(0, float(rng.random() < 0.5), 0.0, rng)
        left -= 1
        assert left >= 0
        if left == 0:
            left, before, releases = curator.due(0), seen(), releases + 1
            assert left >= 1
        assert seen() == before
        assert curator.due(0) == left
    assert releases >= 5


def test_a_round_that_is_left_out_is_no_reason_for_a_negative_stint() -> None:
    curator = released(Frozen, [1024, 1024], [0.5, 0.6], 1.0)
    agent, rng, t = skip_ahead(LazyThompson.start(2), curator), np.random.default_rng(11), 1000
    for _ in range(3000):
        t += int(rng.integers(1, 50))
        assert agent.act(curator, t, rng)[1] >= 1
