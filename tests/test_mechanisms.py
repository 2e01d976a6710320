"""Noise primitives and counters: probabilities in closed form, variances against the formulas of the literature."""

import math

import numpy as np
import pytest

from dpbandits.curators import Batch, HeterogeneousBernoulli, HeterogeneousLaplace, Hybrid, HybridOfAll, Tree
from dpbandits.mechanisms import (
    attenuate,
    attenuation,
    bits_above,
    debias,
    debias_variance,
    response_probability,
    successes,
)
from dpbandits.numerics import kl, kl_upper

DRAWS = 20_000
SIGMAS = 5.5  # a two-sided normal tail of 4e-8 for each comparison


def variance_matches(samples: np.ndarray, expected: float) -> bool:
    """Whether the sample variance is within 5.5 of its own standard errors of what is expected."""
    centred = samples - samples.mean()
    error = math.sqrt((np.mean(centred**4) - np.mean(centred**2) ** 2) / samples.size)
    return bool(abs(np.mean(centred**2) - expected) < SIGMAS * error)


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [1e-8, 1.0, 100.0, 800.0, 1000.0])
def test_convert_to_bernoulli_is_exact_and_never_overflows(reward: float, epsilon: float) -> None:
    p = response_probability(reward, epsilon)
    assert 0.0 <= p <= 1.0
    if epsilon <= 100:
        exact = (reward * math.exp(epsilon) + 1 - reward) / (1 + math.exp(epsilon))
        assert p == pytest.approx(exact, rel=1e-12)
        ends = [response_probability(r, epsilon) for r in (0.0, 1.0)]
        assert ends[1] <= math.exp(epsilon) * ends[0] * (1 + 1e-12)
    assert debias(p, attenuation(epsilon)) == pytest.approx(reward, abs=1e-6 if epsilon < 1 else 1e-12)
    assert debias_variance(attenuation(epsilon)) >= 1.0


def test_ctb_keeps_its_smallest_probability_at_level_100() -> None:
    assert response_probability(0.0, 100.0) == pytest.approx(3.72e-44, rel=1e-2)


@pytest.mark.parametrize("items", [1, 2, 3, 4, 7, 12, 16, 23])
def test_variance_of_the_tree(items: int) -> None:
    horizon, epsilon, rng = 30, 2.0, np.random.default_rng(items)
    levels = 5  # floor(log2 30) + 1
    sums = np.zeros(DRAWS)
    for draw in range(DRAWS):
        curator = Tree.start(2, epsilon=epsilon, horizon=horizon, scale=1.0)
        for _ in range(items):
            curator.add(0, 1.0, 0.0, rng)
        sums[draw] = curator.releases[0, 0] - items
    assert curator.levels == levels
    assert abs(sums.mean()) < SIGMAS * sums.std() / math.sqrt(DRAWS)
    assert variance_matches(sums, 2 * items.bit_count() * levels**2 / epsilon**2)


@pytest.mark.parametrize("items", [1, 2, 3, 4, 7, 12, 16, 23])
@pytest.mark.parametrize("kind", [Hybrid, HybridOfAll])
def test_variance_of_the_hybrid(items: int, kind: type[Hybrid]) -> None:
    log, tree, rng = 1.0, 3.0, np.random.default_rng(items)
    k = items.bit_length() - 1
    sums = np.zeros(DRAWS)
    for draw in range(DRAWS):
        curator = kind.start(2, epsilon_log=log, epsilon_tree=tree)
        for _ in range(items):
            curator.add(0, 1.0, 0.0, rng)
        sums[draw] = curator.releases[0, 0] - items
    assert abs(sums.mean()) < SIGMAS * sums.std() / math.sqrt(DRAWS)
    assert variance_matches(sums, 2 * (k + 1) / log**2 + 2 * (items - 2**k).bit_count() * k**2 / tree**2)


def test_counters_without_noise_are_exact_sums() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.random(300)
    hybrid = Hybrid.start(2, epsilon_log=1e9, epsilon_tree=1e9)
    everybody = HybridOfAll.start(2, epsilon_log=1e9, epsilon_tree=1e9)
    tree = Tree.start(2, epsilon=1e9, horizon=300, scale=1.0)
    totals = [0.0, 0.0]
    for reward in rewards:
        arm = int(rng.integers(2))
        totals[arm] += reward
        for curator in (hybrid, everybody, tree):
            curator.add(arm, reward, 0.0, rng)
            assert curator.releases[arm, 0] == pytest.approx(totals[arm], abs=1e-5)


def test_a_batch_has_the_noise_of_its_own_length() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 8):
        means = np.zeros(DRAWS)
        for draw in range(DRAWS):
            curator = Batch.start(2, epsilon=0.5)
            for _ in range(n):
                curator.add(1, 1.0, 0.0, rng)
            curator.close(1, rng)
            means[draw] = curator.mean(1)
        assert variance_matches(means, 2 / (0.5 * n) ** 2)


def test_the_second_episode_of_azize_and_basu_s_example_2() -> None:
    """After r1, r2 | r3 | r4 r5 | r6 the index at t = 7 uses (r4 + r5)/2 and r6 alone."""
    curator, rng = Batch.start(2, epsilon=1e9), np.random.default_rng(0)
    for arm, rewards in ((0, [0.1]), (1, [0.2]), (0, [0.3]), (0, [0.4, 0.6]), (1, [0.8])):
        for reward in rewards:
            curator.add(arm, reward, 0.0, rng)
        curator.close(arm, rng)
    assert curator.mean(0) == pytest.approx(0.5, abs=1e-6)
    assert curator.samples(0, 0) == 2
    assert curator.mean(1) == pytest.approx(0.8, abs=1e-6)
    assert curator.samples(1, 0) == 1


def test_rewards_are_clipped_inside_the_private_boundary() -> None:
    rng = np.random.default_rng(0)
    curator = Batch.start(2, epsilon=1e9)
    for reward in (7.0, -3.0, math.nan, math.inf):
        curator.add(0, reward, 0.0, rng)
    curator.close(0, rng)
    assert curator.mean(0) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("kind", [HeterogeneousLaplace, HeterogeneousBernoulli])
def test_level_zero_is_no_response_and_level_1000_does_not_overflow(kind: type[HeterogeneousLaplace]) -> None:
    curator, rng = kind.start(2, epsilon_min=0.5), np.random.default_rng(0)
    assert math.isnan(curator.respond(1.0, 0.0, rng))
    curator.add(0, math.nan, 0.0, rng)
    assert curator.counts[0] == 0
    for level in (0.5, 100.0, 1000.0):
        curator.add(0, curator.respond(1.0, level, rng), level, rng)
    assert curator.counts[0] == 3
    assert math.isfinite(curator.mean(0))


def test_kl_upper_is_the_root_that_bisection_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        p, budget = rng.random() ** 3, 10.0 ** rng.uniform(-12, 2)
        low, high = p, 1.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kl(p, middle) <= budget else (low, middle)
        assert kl_upper(p, budget) == pytest.approx(low, abs=2e-9 if budget < 1e-9 else 1e-11)


@pytest.mark.parametrize("epsilon", [1e-8, 0.2, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0])
def test_two_ways_to_write_the_probability_of_a_one_agree(mean: float, epsilon: float) -> None:
    """And the second is what ``debias`` undoes."""
    slope = attenuation(epsilon)
    assert attenuate(mean, slope) == pytest.approx(response_probability(mean, epsilon), abs=1e-15)
    assert debias(attenuate(mean, slope), slope) == pytest.approx(mean, abs=1e-15 / slope)


def test_bits_above_a_line_have_the_law_of_single_bits() -> None:
    """Chi-square of the stopping round against the round-by-round law, failure probability 1e-6."""
    from scipy.stats import chi2

    total, count, line, most, p, rng = 6.0, 8, 0.62, 12, 0.6, np.random.default_rng(1)
    alive, stopped = {total: 1.0}, np.zeros(most + 1)
    for drawn in range(1, most + 1):
        following: dict[float, float] = {}
        for value, weight in alive.items():
            for bit, chance in ((1.0, p), (0.0, 1 - p)):
                after = value + bit
                if after <= line * (count + drawn) or drawn == most:
                    stopped[drawn] += weight * chance
                else:
                    following[after] = following.get(after, 0.0) + weight * chance
        alive = following
    seen = np.zeros(most + 1)
    for _ in range(DRAWS):
        here, drawn, done = total, 0, False
        while not done:
            step, ones = bits_above(here, count + drawn, line, most - drawn, p, rng)
            here, drawn = here + ones, drawn + step
            done = drawn == most or here <= line * (count + drawn)
        seen[drawn] += 1
    likely = stopped * DRAWS > 5
    statistic = np.sum((seen[likely] - DRAWS * stopped[likely]) ** 2 / (DRAWS * stopped[likely]))
    assert likely.sum() >= 4
    assert seen[~likely].sum() <= DRAWS * stopped[~likely].sum() + 40
    assert statistic < chi2.ppf(1 - 1e-6, likely.sum() - 1)


def test_successes_are_binomial() -> None:
    rng = np.random.default_rng(2)
    draws = np.array([successes(50, 0.3, rng) for _ in range(DRAWS)])
    assert abs(draws.mean() - 15) < SIGMAS * math.sqrt(50 * 0.21 / DRAWS)
    assert variance_matches(draws, 50 * 0.21)
