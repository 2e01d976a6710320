"""HeLDP-Weighted and HeLDP-GLR against a second implementation, and against the paper at its best threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from naive import kl

import dpbandits as dp
from dpbandits.policies import lookup

LEVELS = (0.0, 0.3, 1.0, 2.0, 100.0)
Sent = list[list[tuple[float, float]]]  # by arm: (level, response)


def weighted(sent: Sent, weight: Any, debiased: Any) -> list[float]:
    """The index of each arm from weighted means."""
    totals = [sum(weight(level) for level, _ in own) for own in sent]
    means = [
        sum(weight(level) * debiased(level, x) for level, x in own) / total
        for own, total in zip(sent, totals, strict=True)
    ]
    return [index(2.0 * total * (max(means) - mean) ** 2, total) for mean, total in zip(means, totals, strict=True)]


def index(evidence: float, n: float) -> float:
    """IMED's, with correction 1."""
    return max(0.0, evidence - math.log1p(evidence)) + max(math.log(n), 0.0)


def binned(sent: Sent) -> list[float]:
    """The index of each arm from the likelihood over levels, its least point by a search."""
    cells = []
    for own in sent:
        tally: dict[float, list[float]] = {}
        for level, x in own:
            tally.setdefault(math.tanh(level / 2), []).append(x)
        cells.append([(slope, len(bits), sum(bits)) for slope, bits in tally.items()])

    def misfit(cell: list[tuple[float, int, float]], q: float) -> float:
        return sum(n * kl(ones / n, 0.5 + (q - 0.5) * slope) for slope, n, ones in cell)

    means = []
    for cell in cells:
        low, high = 0.0, 1.0
        for _ in range(90):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, b) if misfit(cell, a) < misfit(cell, b) else (a, high)
        means.append(0.5 * (low + high))
    top = max(means)
    return [
        index(max(misfit(cell, top) - misfit(cell, mean), 0.0), sum(n * s * s for s, n, _ in cell))
        for cell, mean in zip(cells, means, strict=True)
    ]


INDICES: dict[str, Any] = {
    "heldp-weighted-b": lambda sent: weighted(
        sent, lambda e: math.tanh(e / 2) ** 2, lambda e, x: 0.5 + (x - 0.5) / math.tanh(e / 2)
    ),
    "heldp-weighted-l": lambda sent: weighted(sent, lambda e: e * e / (e * e + 8.0), lambda e, x: x),
    "heldp-glr-b": binned,
}


@pytest.mark.parametrize("name", INDICES)
def test_the_least_index_is_played(name: str) -> None:
    policy: Any = lookup.find(name)(arms=3)
    rng = np.random.default_rng(1)
    sent: Sent = [[], [], []]
    for t in range(1, 500):
        arm = policy.agent.act(policy.curator, t, rng)[0]
        if all(sent):
            indices = INDICES[name](sent)
            assert indices[arm] <= min(indices) + 1e-6
        level = LEVELS[rng.integers(len(LEVELS))]
        response = policy.curator.respond(float(rng.random() < (0.9, 0.5, 0.7)[arm]), level, rng)
        if level > 0.0:
            policy.curator.add(arm, response, level, rng)
            sent[arm].append((level, response))


def test_they_lose_a_fifth_of_what_the_paper_s_policy_loses_at_its_best_threshold() -> None:
    """C2, the paper's five levels, 10^6 rounds; beyond 5 standard errors."""
    given: dict[str, Any] = {"arms": "@azize2022-c2", "levels": "choice(0,0.2,1,2,100)", "horizon": 10**6, "runs": 20}
    paper = min(
        (dp.simulate("heldp-ucb-b", options={"epsilon_min": least}, **given) for least in (0.2, 1, 2, 100)),
        key=lambda trace: float(trace.final_regret.mean()),
    )
    for name in ("heldp-weighted-b", "heldp-glr-b"):
        ours = dp.simulate(name, **given)
        error = 5.0 * math.hypot(ours.stderr[-1], 0.2 * paper.stderr[-1])
        assert ours.final_regret.mean() <= 0.2 * paper.final_regret.mean() + error


def test_where_all_have_one_level_the_likelihood_is_that_of_the_bits() -> None:
    """One bin: n kl on bits, as for LDP-IMED-B, but for the estimate, which stays in [0, 1]."""
    curator: Any = dp.policies.heldp_glr_b(arms=2).curator
    rng = np.random.default_rng(0)
    for _ in range(60):
        for bit in (0.0, 1.0):
            curator.add(0, bit, 1.0, rng)
    slope = math.tanh(0.5)
    assert curator.mean(0) == pytest.approx(0.5)
    for q in (0.3, 0.7, 0.99):
        assert curator.evidence(0, 0.5, q) == pytest.approx(120 * kl(0.5, 0.5 + (q - 0.5) * slope))


def test_the_weighted_mean_is_covered() -> None:
    """P(mean >= mu + z) <= exp(-2 W z^2): 4000 draws of 50 users, each bound at 5 standard errors of a share."""
    rng = np.random.default_rng(2)
    slopes = np.tanh(np.array(LEVELS[1:]) / 2)[rng.integers(4, size=(4000, 50))]
    bits = rng.random((4000, 50)) < 0.5 + (0.8 - 0.5) * slopes
    total = (slopes**2).sum(axis=1)
    mean = ((0.5 + (bits - 0.5) / slopes) * slopes**2).sum(axis=1) / total
    for u in (0.5, 1.0, 2.0, 4.0):
        share, most = (2 * total * np.maximum(mean - 0.8, 0) ** 2 >= u).mean(), math.exp(-u)
        assert share <= most + 5 * math.sqrt(most / 4000)


@pytest.mark.parametrize("level", [5e-324, 1e-300, 1e-162, 1e-150, 1e-10])
def test_a_response_at_a_tiny_level_tells_nothing_and_is_no_error(level: float) -> None:
    rng = np.random.default_rng(0)
    for name in ("heldp-weighted-b", "heldp-weighted-l", "heldp-glr-b"):
        curator: Any = lookup.sample(name, arms=2).fresh().curator
        curator.add(0, 1.0, level, rng)
        assert 0.0 <= curator.weights[0] < 1e-19
