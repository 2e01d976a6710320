"""What is known of an arm: the interval holds the mean as often as it says, after runs of policies that adapt."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import dpbandits as dp
from dpbandits.curators import Batch, RunningSum, WeightedLaplace, interval
from dpbandits.curators.intervals import noise, spread
from dpbandits.environments import Arms, Levels
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.testing.case import player, streams

MEANS = [0.6, 0.5, 0.05]
RUNS = 150
POLICIES = [
    "ucb1", "adap-ucb", "dp-se", "dp-klucb", "dp-glr-imed", "dp-tt", "anytime-lazy-ucb", "lazy-dp-ts", "adac-ucb",
    "ldp-ucb-b", "ldp-ts-b", "ldp-ucb-l", "heldp-ucb-b", "heldp-weighted-b",
]  # fmt: skip
WIDE = ["heldp-ucb-l", "dp-ucb-int", "dp-ucb-bound", "dp-ucb", "private-ucb"]  # their noise is large at first


@pytest.mark.parametrize("name", [*POLICIES, *WIDE])
def test_intervals_hold_after_an_adaptive_deployment(name: str) -> None:
    """beta = 0.2 for each of 3 arms in 150 runs: an interval that fails just so often is refused with 1e-6."""
    rounds, beta, widths, missed = 3000, 0.2, [], np.zeros(3)
    environment = Arms.of(MEANS).environment(Levels.of([1, 2]) if lookup.traits(name).levels is not None else None)
    fresh = lookup.sample(name, arms=3, epsilon=2.0, horizon=rounds)
    played = player(fresh, environment, skipping=False)
    for run in range(RUNS):
        policy = fresh.fresh()
        played(policy, environment, np.array([rounds]), streams(run, 17))
        for arm, mean in enumerate(MEANS):
            low, high = interval(policy.curator, arm, beta)
            assert 0.0 <= low <= high <= 1.0
            missed[arm] += not low <= mean <= high
            widths.append(high - low)
    assert missed.max() <= binom.isf(1e-6 / 3, RUNS, beta)
    if name in POLICIES and name != "dp-se":  # DP-SE has released little by then
        assert np.median(widths) < 0.95


def test_an_interval_that_is_too_narrow_is_seen() -> None:
    """Without its noise, the interval of a batch fails far more often than it says."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(RUNS):
        noisy, blind = Batch.start(1, epsilon=0.02), Batch.start(1, epsilon=1e6)
        for curator in (noisy, blind):
            for reward in rng.random(200) < 0.5:
                curator.add(0, float(reward), 0.0, rng)
            curator.close(0, rng)
        blind.means[0] = noisy.means[0]
        low, high = interval(blind, 0, 0.05)
        missed += not low <= 0.5 <= high
    assert missed > binom.isf(1e-6, RUNS, 0.05)


def test_more_rewards_and_less_noise_make_it_narrower() -> None:
    def width(n: int, epsilon: float, beta: float = 0.05) -> float:
        curator = RunningSum.start(1, epsilon=epsilon)
        curator.counts[0], curator.batches[0], curator.sums[0, 0], curator.sizes[0, 0] = n, 1, n / 2, n
        low, high = interval(curator, 0, beta)
        return high - low

    assert width(1000, 1.0) < width(100, 1.0) < width(100, 0.1)
    assert width(1000, 1.0, 0.01) > width(1000, 1.0, 0.1)
    lemma_3 = 2.0 * (np.log(3.0 / 0.05) / (1000 * 0.1) + np.sqrt(np.log(3.0 / 0.05) / 2000))
    assert width(1000, 0.1) < lemma_3  # Azize & Basu 2022, at the same confidence; both sides, 3/2 delta each


def test_released_means_beyond_the_range_are_no_error() -> None:
    curator = Batch.start(1, epsilon=1.0)
    for mean in (-40.0, 50.0, 1.0, 0.0):
        curator.counts[0], curator.means[0] = 4, mean
        low, high = interval(curator, 0, 0.05)
        assert 0.0 <= low <= high <= 1.0


def test_a_session_knows_an_arm_in_the_unit_of_its_rewards() -> None:
    session = dp.Session("adap-ucb", arms=["a", "b"], epsilon=1, reward_range=(0, 20))
    assert session.interval("a") == (0.0, 20.0)
    for _ in range(3000):
        decision = session.ask()
        session.tell(decision, 15.0 if decision.arm == "a" else 5.0)
    low, high = session.interval("a", confidence=0.9)
    assert 12.0 < low < 15.0 < high < 18.0
    with pytest.raises(InputError, match="confidence"):
        session.interval("a", confidence=95)
    with pytest.raises(InputError, match="unknown"):
        session.interval("c")


def test_a_curator_without_a_known_interval_says_so() -> None:
    curator, rng = WeightedLaplace.start(2), np.random.default_rng(0)
    curator.add(0, 1.0, 1.0, rng)
    with pytest.raises(InputError, match="known interval, got WeightedLaplace"):
        interval(curator, 0)


def test_the_bound_on_a_sample_holds_at_all_times() -> None:
    """400 walks of 4000 steps: each leaves the bound, ever, with probability at most 0.05.

    At least 40 of 400 would leave it with probability below 1e-4 if that probability were 0.05. Hoeffding's bound is
    one for a single time, and is left by more.
    """
    n = np.arange(1, 4001)
    sums = np.abs(np.random.default_rng(0).integers(0, 2, (400, 4000)).cumsum(axis=1) - n / 2)
    always = np.array([spread(k / 4.0, 0.05) for k in n])
    assert (sums > always).any(axis=1).sum() < 40
    assert (sums > np.sqrt(n * np.log(2 / 0.05) / 2)).any(axis=1).sum() > 40


@pytest.mark.parametrize("scales", [[1.0], [2.0] * 3, [1.0] * 50, [5.0, *[0.1] * 200]])
def test_the_noise_is_bounded(scales: list[float]) -> None:
    """Each of 4000 sums exceeds the bound with probability at most 0.1; by Hoeffding more than 0.1 + 0.051 of them do
    with probability below exp(-2 * 4000 * 0.0026) < 1e-9."""
    sums = np.random.default_rng(1).laplace(0.0, scales, (4000, len(scales))).sum(1)
    bound = noise(sum(scale * scale for scale in scales), max(scales), 0.1)
    assert np.mean(np.abs(sums) > bound) < 0.151
