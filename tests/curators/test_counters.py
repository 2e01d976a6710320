"""Counters of the central model: exact sums without noise, variances as the literature's formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits.curators import Batch, Hybrid, HybridOfAll, Tree
from dpbandits.types import Floats

DRAWS = 20_000
SIGMAS = 5.5  # a two-sided normal tail of 4e-8 for each comparison


def variance_matches(samples: Floats, expected: float) -> bool:
    """Whether the sample variance is within 5.5 of its own standard errors of what is expected."""
    centred = samples - samples.mean()
    error = math.sqrt((np.mean(centred**4) - np.mean(centred**2) ** 2) / samples.size)
    return bool(abs(np.mean(centred**2) - expected) < SIGMAS * error)


@pytest.mark.parametrize("items", [1, 2, 3, 4, 7, 12, 16, 23])
def test_variance_of_the_tree(items: int) -> None:
    horizon, epsilon, rng = 30, 2.0, np.random.default_rng(items)
    levels = 5  # floor(log2 30) + 1
    sums = np.zeros(DRAWS)
    for draw in range(DRAWS):
        curator = Tree.start(2, epsilon=epsilon, horizon=horizon, width_factor=1.0)
        for _ in range(items):
            curator.add(0, 1.0, 0.0, rng)
        sums[draw] = curator.releases[0, 0] - items
    assert curator.depth == levels
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
    tree = Tree.start(2, epsilon=1e9, horizon=300, width_factor=1.0)
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
