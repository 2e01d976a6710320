"""An index on a likelihood is computed only where it can decide: the choices are those of all indices, every time."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from dpbandits.agents import LikelihoodIMED
from dpbandits.curators import (
    BatchLikelihood,
    BinnedBernoulli,
    LocalPiecewise,
    RunningSum,
    WeightedBernoulli,
    WeightedLaplace,
)
from dpbandits.curators.likelihood import HIGH, LOW
from dpbandits.numerics import corrected, positive_log
from dpbandits.parts import in_plain_python

ARMS = 4
CURATORS: dict[str, Any] = {
    "binned": lambda: BinnedBernoulli.start(ARMS),
    "weighted": lambda: WeightedBernoulli.start(ARMS),
    "laplace": lambda: WeightedLaplace.start(ARMS),
    "piecewise": lambda: LocalPiecewise.start(ARMS, epsilon=2.0),
    "running sum": lambda: RunningSum.start(ARMS, epsilon=1.0),
    "batches": lambda: BatchLikelihood.start(ARMS, epsilon=1.0),
}
MEANS = {
    "far": (0.9, 0.5, 0.7, 0.3),
    "near": (0.5, 0.52, 0.5, 0.48),
    "equal": (0.5,) * 4,
    "rare": (0.03, 0.04, 0.0, 1.0),
}
LEVELS = {"one": (1.0,), "few": (0.2, 1.0, 2.0, 100.0), "many": tuple(0.25 * k for k in range(1, 25))}


def least_index(curator: Any, correction: float) -> int:
    """The first arm with the least index, all of them computed from nothing."""
    means = [curator.mean(arm) for arm in range(ARMS)]
    top = max(0.0, *means)
    indices = []
    for arm, mean in enumerate(means):
        evidence = max(curator.evidence(arm, mean, top), 0.0) if mean < top else 0.0
        indices.append(corrected(evidence, correction) + positive_log(curator.samples(arm, 0)))
    return indices.index(min(indices))


@pytest.mark.parametrize("correction", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("name", CURATORS)
def test_the_choice_is_the_least_of_all_indices(name: str, means: str, correction: float) -> None:
    """Also where responses of several arms come between two choices, or none does."""
    rng = np.random.default_rng(len(name))
    curator: Any = in_plain_python(CURATORS[name]())
    agent: Any = in_plain_python(LikelihoodIMED.start(ARMS, correction=correction))
    levels = LEVELS[("one", "few", "many")[len(means) % 3]]
    chosen = set()
    for t in range(1, 600):
        arm = agent.act(curator, t, rng)[0]
        if all(curator.ready(other, positive_log(t)) for other in range(ARMS)):
            assert arm == least_index(curator, correction), t
        chosen.add(arm)
        answering = [arm] if t % 7 else [] if t % 2 else [arm, *rng.integers(ARMS, size=3).tolist()]
        for other in answering:
            level = levels[rng.integers(len(levels))]
            response = curator.respond(float(rng.random() < MEANS[means][other]), level, rng)
            curator.add(other, float(response), level, rng)
            curator.close(other, rng)
    assert len(chosen) == ARMS


class Counted(BinnedBernoulli):
    """Counts what is computed."""

    __slots__ = ()

    calls: ClassVar[Counter[str]] = Counter()

    def score(self, arm: int, mean: float) -> tuple[float, float]:
        self.calls["score"] += 1
        return super().score(arm, mean)

    def evidence(self, arm: int, mean: float, top: float) -> float:
        self.calls["evidence"] += 1
        return super().evidence(arm, mean, top)


@pytest.mark.parametrize(
    ("levels", "means", "scores", "evidence"),
    [("one", "far", 2.0, 0.5), ("few", "far", 2.5, 0.5), ("many", "far", 2.5, 0.5), ("few", "equal", 4.5, 1.5)],
)
def test_a_live_choice_computes_little(levels: str, means: str, scores: float, evidence: float) -> None:
    """Sums over the bins in a round, on average; with every index computed it would be about 7 and 3."""
    rounds, rng, own = 2000, np.random.default_rng(0), LEVELS[levels]
    curator: Any = in_plain_python(Counted.start(ARMS))
    agent: Any = in_plain_python(LikelihoodIMED.start(ARMS, correction=1.0))
    curator.calls.clear()
    for t in range(1, rounds):
        arm, level = agent.act(curator, t, rng)[0], own[rng.integers(len(own))]
        curator.add(arm, curator.respond(float(rng.random() < MEANS[means][arm]), level, rng), level, rng)
    assert curator.calls["score"] <= scores * rounds
    assert curator.calls["evidence"] <= evidence * rounds


@pytest.mark.parametrize("bits", [(1.0,) * 9, (0.0,) * 9, (1.0,) * 8 + (0.0,), (1.0, 0.0), (1.0,) * 30 + (0.0,) * 13])
@pytest.mark.parametrize("levels", LEVELS)
def test_the_most_likely_mean_is_found_in_a_few_steps(levels: str, bits: tuple[float, ...]) -> None:
    """Also where it is an end of [0, 1], which no mean inside fits as well."""
    curator: Any = in_plain_python(Counted.start(1))
    for number, bit in enumerate(bits):
        curator.add(0, bit, LEVELS[levels][number % len(LEVELS[levels])], np.random.default_rng(0))
    curator.calls.clear()
    mean = curator.mean(0)
    assert curator.calls["score"] <= 12
    slope, bend = curator.score(0, mean)
    assert (mean == HIGH and slope <= 0.0) or (mean == LOW and slope >= 0.0) or abs(slope) <= 1e-9 * bend
    for shift in (-1e-4, 1e-4):
        if LOW <= mean + shift <= HIGH:
            assert curator.evidence(0, mean, mean + shift) > 0.0
            assert curator.reaches(0, mean + shift) == (shift < 0.0)
