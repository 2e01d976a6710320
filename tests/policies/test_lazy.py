"""Lazy releases, Gaussian noise and covered noise: reference values, formulas, and the exact Gaussian sampler."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.agents.lazy import CoveringUCB
from dpbandits.errors import InputError
from dpbandits.exact import DiscreteGaussian
from dpbandits.mechanisms import zcdp_at


@pytest.mark.parametrize(
    ("policy", "epsilon", "options", "reference"),
    [
        ("anytime-lazy-ucb", 1.0, {}, 1772),
        ("anytime-lazy-ucb", 1.0, {"c": 1.5}, 1260),
        ("lazy-dp-ts", 1.0, {}, 579),
        ("adac-ucb", 30.0, {"rho": 0.005}, 1288),
        ("adac-ucb", 30.0, {"rho": 0.5}, 664),
    ],
)
def test_regret_is_that_of_an_independent_simulation(
    policy: str, epsilon: float, options: dict[str, Any], reference: float
) -> None:
    """C2 at 10^5 rounds. The references have few runs: 5 standard errors of 30 runs each, and 5 %."""
    trace = dp.simulate(policy, arms="@azize2022-c2", epsilon=epsilon, horizon=10**5, runs=30, seed=1, options=options)
    error = 5.0 * math.sqrt(2.0) * trace.stderr[-1]
    assert abs(trace.final_regret.mean() - reference) <= error + 0.05 * reference


def test_a_lazy_curator_releases_1_2_4_new_rewards() -> None:
    policy: Any = dp.policies.anytime_lazy_ucb(arms=2, epsilon=1e9)
    rng, released = np.random.default_rng(0), []
    for number in range(1, 64):
        policy.curator.add(0, float(number % 2), 0.0, rng)
        released.append(int(policy.curator.counts[0]))
    assert released == [1 << (n + 1).bit_length() - 2 for n in range(1, 64)]


def test_covered_noise_is_the_largest_shift_that_sampling_and_noise_explain() -> None:
    agent, z = CoveringUCB.start(2), np.linspace(0.0, 3.0, 300_001)
    for n, scale, budget in ((10.0, 0.5, 3.0), (1000.0, 0.0001, 3.0), (100.0, 0.05, 1.0), (7.0, 0.2, 12.0)):
        shift = agent.shift(n, scale, budget)
        for factor, explained in ((0.999, True), (1.001, False)):
            cost = 2.0 * n * z**2 + np.maximum(factor * shift - z, 0.0) / scale
            assert bool(cost.min() <= budget) is explained


def test_covered_noise_makes_lock_outs_rare() -> None:
    """0.9 and 0.6 at epsilon 1 and 10^5 rounds, 2500 runs.

    Printed: 0.5 % of the runs lose 3000 or more, so fewer than 3 do with probability 3e-4. Covered: a lock-out lasts
    longer than 10^4 rounds with probability below (10^4/46)^-1.5 = 3e-4, so more than 8 do with probability below 1e-6.
    """
    lost = {
        cover: dp.simulate(
            "dp-ucb-int",
            arms="0.9,0.6",
            epsilon=1,
            horizon=10**5,
            runs=2500,
            options={"cover_noise": cover},
            checkpoints=1,
        ).final_regret
        for cover in (False, True)
    }
    assert (lost[False] > 3000).sum() >= 3
    assert (lost[True] > 3000).sum() <= 8


def test_rho_implies_epsilon_and_delta_and_a_larger_one_is_refused() -> None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, math.exp(-10)), (5.0, 1e-12)):
        rho = zcdp_at(epsilon, delta)
        assert rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)) == pytest.approx(epsilon, rel=1e-12)
    promise = dp.policies.adac_ucb(arms=2, epsilon=1.0, rho=0.01).guarantee
    assert "0.01-zCDP" in promise.conditions
    with pytest.raises(InputError, match="rho must be at most"):
        dp.policies.adac_ucb(arms=2, epsilon=1.0, rho=1.0)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(4), Fraction(2500)])
def test_the_discrete_gaussian_has_its_law(variance: Fraction) -> None:
    """A chi-squared test of 20 000 draws on cells that expect at least 20 of them, at an error of 1e-6."""
    from scipy.stats import chi2

    draw, n = DiscreteGaussian(variance, os.urandom), 20_000
    reach = math.ceil(12 * math.sqrt(variance)) + 2
    values = np.arange(-reach, reach + 1)
    law = np.exp(-(values**2) / (2.0 * float(variance)))
    law /= law.sum()
    counts = np.bincount(np.array([draw(0) for _ in range(n)]) + reach, minlength=values.size)
    common = n * law >= 20
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(n * law[common], max(n * law[~common].sum(), 1e-9))
    if expected[-1] < 20:
        observed[0], expected[0] = observed[0] + observed[-1], expected[0] + expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert statistic <= chi2.isf(1e-6, max(observed.size - 1, 1))
