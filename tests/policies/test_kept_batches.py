"""DP-KLUCB, DP-IMED and DP-GLR-IMED against a second implementation, reference values and their closed forms."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import naive
import numpy as np
import pytest

import dpbandits as dp
from dpbandits.agents import batches
from dpbandits.agents.geometric import grown
from dpbandits.curators import BatchLikelihood
from dpbandits.numerics import d_eps, d_eps_slope, d_eps_upper
from dpbandits.policies import lookup


def played(policy: Any, rounds: int, seed: int) -> Any:
    """Yields (t, arm, stint, what was released of each arm) before each stint."""
    rng, curator = np.random.default_rng(seed), policy.curator
    means, t = (0.9, 0.4, 0.7), 1
    while t <= rounds:
        arm, stint, _ = policy.agent.act(curator, t, rng)
        released = [
            [(int(curator.sizes[a, b]), float(curator.sums[a, b])) for b in range(curator.batches[a])] for a in range(3)
        ]
        yield t, arm, stint, released
        for _ in range(stint):
            curator.add(arm, float(rng.random() < means[arm]), 0.0, rng)
        curator.close(arm, rng)
        t += stint


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("name", ["dp-klucb", "dp-imed", "dp-glr-imed"])
def test_the_arm_with_the_best_index_is_played_until_its_count_has_grown(name: str, epsilon: float) -> None:
    make = lookup.find(name)
    policy = make(arms=3, epsilon=epsilon, first=3)
    ratio = policy.settings["ratio"]
    for t, arm, stint, released in played(policy, 3000, 1):
        n = sum(size for size, _ in released[arm])
        assert stint == (3 if n == 0 else max(n + 1, math.ceil(ratio * n)) - n)
        if all(released):
            index = {
                "dp-klucb": lambda r, t: naive.dp_klucb(r, epsilon, t),
                "dp-imed": lambda r, t: naive.dp_imed(r, epsilon),
                "dp-glr-imed": lambda r, t: naive.dp_glr_imed(r, epsilon, 1.5),
            }[name](released, t)
            assert index[arm] <= min(index) + 1e-6 * (1.0 + abs(min(index)))


@pytest.mark.parametrize(
    ("policy", "options", "arms", "epsilon", "reference"),
    [
        ("dp-klucb", {"first": 1}, "@azize2022-c3", 1.0, 143),
        ("dp-klucb", {}, "@azize2022-c1", 1.0, 694),
        ("dp-klucb", {}, "@azize2022-c2", 0.1, 924),
        ("dp-glr-imed", {}, "@azize2022-c1", 1.0, 489),
        ("dp-glr-imed", {}, "@azize2022-c2", 0.1, 959),
        ("dp-glr-imed", {"correction": 0}, "@azize2022-c2", 1.0, 132),
        ("dp-glr-imed", {}, "0.5,0.49", 0.1, 572),
    ],
)
def test_regret_is_that_of_an_independent_simulation(
    policy: str, options: dict[str, Any], arms: str, epsilon: float, reference: float
) -> None:
    """At 5 standard errors and 2 % for the reference's own error (1000 runs or more, rounded)."""
    trace = dp.simulate(policy, arms=arms, epsilon=epsilon, horizon=10**7, runs=300, seed=1, options=options)
    assert abs(trace.final_regret.mean() - reference) <= 5 * trace.stderr[-1] + 0.02 * reference


def test_the_closed_forms_are_what_a_search_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(400):
        x, y, epsilon = rng.uniform(-1, 2), rng.uniform(0.01, 0.99), 10.0 ** rng.uniform(-2, 1)
        assert d_eps(x, y, epsilon) == pytest.approx(naive.d_eps(x, y, epsilon), rel=1e-7, abs=1e-9)
        h = 1e-6
        first, second = d_eps_slope(x, y, epsilon)
        around = [d_eps(x, y + step, epsilon) for step in (-h, 0.0, h)]
        assert first == pytest.approx((around[2] - around[0]) / (2 * h), rel=1e-3, abs=1e-3)
        assert second >= 0.0
        x = min(max(x, 0.0), 1.0)
        upper = d_eps_upper(x, 0.1, epsilon)
        assert x <= upper <= 1.0
        assert d_eps(x, upper, epsilon) <= 0.1 + 1e-9
        assert upper == 1.0 or d_eps(x, upper, epsilon) == pytest.approx(0.1, rel=1e-6)


def test_a_batch_with_a_huge_noise_moves_the_estimate_little() -> None:
    """The slope of a batch's likelihood is bounded by its size times about epsilon; a plain mean has no such bound."""
    curator = BatchLikelihood.start(2, epsilon=0.1)
    curator.batches[0], curator.counts[0] = 2, 1010
    curator.sizes[0, :2], curator.sums[0, :2] = (10, 1000), (-900.0, 500.0)
    assert curator.average(0) < -0.35
    assert abs(curator.mean(0) - 0.5) < 0.01


def test_there_is_room_for_every_batch() -> None:
    for ratio, first in ((1.05, 1), (1.5, 4), (2.0, 10), (8.0, 1)):
        policy: Any = dp.policies.dp_glr_imed(arms=2, epsilon=1.0, ratio=ratio, first=first)
        n, count = 0, 0
        while n < 2**53:
            n, count = grown(n, policy.agent.ratio, policy.agent.first), count + 1
        assert count == batches(ratio, first) == policy.curator.sums.shape[1]


@pytest.fixture(scope="module")
def variants() -> ModuleType:
    """The variants of DP-GLR-IMED that benchmarks/ measures."""
    path = Path(__file__).parents[2] / "benchmarks" / "glr_variants.py"
    spec = importlib.util.spec_from_file_location("glr_variants", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_closed_form_of_the_exact_likelihood_is_the_convolution(variants: ModuleType) -> None:
    for n in (1, 4, 30):
        for mean in (1e-6, 0.03, 0.5, 0.9, 1 - 1e-6):
            for epsilon in (0.1, 1.0, 4.0):
                for noisy in (-3.2, -1.0, 0.0, 0.5, n / 2, n - 0.3, float(n), n + 2.5):
                    summed = sum(
                        math.comb(n, k) * mean**k * (1 - mean) ** (n - k) * math.exp(-epsilon * abs(noisy - k))
                        for k in range(n + 1)
                    )
                    assert variants.log_likelihood(noisy, n, mean, epsilon) == pytest.approx(math.log(summed), rel=1e-8)


def test_the_evidence_of_the_exact_likelihood_is_the_logarithm_of_its_ratio(variants: ModuleType) -> None:
    """It differs from that of the saddle-point form, and has no other value at its own mean."""
    curator, shipped = (kind.start(1, epsilon=0.1) for kind in (variants.ExactLikelihood, BatchLikelihood))
    for one in (curator, shipped):
        one.batches[0], one.counts[0] = 2, 14.0
        one.sums[0, :2], one.sizes[0, :2] = (2.5, 9.25), (4.0, 10.0)
    mean = curator.mean(0)
    for top in (0.7, 0.9, 0.99):
        ratio = sum(
            variants.log_likelihood(noisy, n, mean, 0.1) - variants.log_likelihood(noisy, n, top, 0.1)
            for noisy, n in ((2.5, 4.0), (9.25, 10.0))
        )
        assert curator.evidence(0, mean, top) == pytest.approx(ratio)
        assert curator.evidence(0, mean, top) != pytest.approx(shipped.evidence(0, mean, top), rel=0.01)
    assert curator.evidence(0, mean, mean) == 0.0


@pytest.mark.parametrize("name", ["exact", "integers", "upper"])
def test_every_variant_can_be_played(variants: ModuleType, name: str) -> None:
    trace = dp.simulate(getattr(variants, name), arms="0.9,0.1", horizon=2000, runs=2, epsilon=1.0, engine="python")
    assert trace.pulls[:, -1].sum() == 4000
    assert trace.pulls[0, -1, 0] > 1500


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("rewards", ["bits", "uniform"])
def test_the_misfit_at_the_true_mean_is_below_a_gamma_variable(
    variants: ModuleType, epsilon: float, rewards: str
) -> None:
    """Lemma 1 of docs/papers/strongest.md: P(J(mean) > u) <= P(Gamma(2m) > u), for rewards in [0, 1].

    Each of the 4 x 3 x 4 comparisons fails wrongly with probability below 1e-9, by Hoeffding's inequality. The
    tail e^-u, which IMED's proof needs, is refuted for six batches, so that the comparison can fail.
    """
    rng, draws, first = np.random.default_rng(7), 20_000, 4
    allowed = math.sqrt(math.log(1e9) / (2 * draws))
    mean = 0.3 if rewards == "bits" else 0.5
    sizes, plays = [first], first
    while len(sizes) < 6:
        sizes.append(grown(plays, 1.5, first) - plays)
        plays += sizes[-1]
    misfit = np.zeros(draws)
    for m, n in enumerate(sizes, start=1):
        sums = rng.binomial(n, mean, draws) if rewards == "bits" else rng.random((draws, n)).sum(axis=1)
        noisy = (sums + rng.laplace(0.0, 1.0 / epsilon, draws)) / n
        misfit += n * np.array([d_eps(min(x, mean), mean, epsilon) for x in noisy.tolist()])
        if m in (1, 3, 6):
            for u in (0.25 * m, 1.0 * m, 2.0 * m, 4.0 * m):
                assert (misfit > u).mean() <= math.exp(variants.log_gamma_tail(2 * m, u)) + allowed, (m, u)
    assert (misfit > 3.0).mean() > math.exp(-3.0) + allowed


def test_the_threshold_of_the_upper_bound_is_a_quantile_of_the_gamma_variable(variants: ModuleType) -> None:
    curator = variants.UpperLikelihood.start(2, epsilon=1.0)
    curator.batches[0] = 5
    u = curator.threshold(0, math.log(1000.0))
    assert variants.log_gamma_tail(10, u) == pytest.approx(-math.log(1000.0 * (1 + math.log(1000.0)) ** 2 * 2**5))
