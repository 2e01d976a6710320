"""The misfit as a power series: what it says is what all bits say, in 40 digits."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dpbandits.curators import BinnedBernoulli
from dpbandits.curators.expansion import NOTHING, TOLERANCE, Expansion
from dpbandits.curators.likelihood import HIGH, LOW
from dpbandits.mechanisms import attenuate, attenuation
from dpbandits.parts import in_plain_python
from dpbandits.protocols import EVIDENCE_MARGIN

POPULATIONS: dict[str, tuple[float, ...]] = {
    "24 levels": tuple(k / 4 for k in range(1, 25)),
    "weak and strong": (0.001, 0.01, 0.5, 1.0, 3.0, 100.0),
    "normal": tuple(np.abs(np.random.default_rng(0).normal(1.0, 1.0, 1000)).tolist()),
}


def misfit(bits: list[tuple[float, float, float]], mean: float | mp.mpf) -> mp.mpf:
    """Minus the log-likelihood, from the number of bits of each bin, of ones among them, and their attenuations."""
    total = mp.mpf(0)
    for n, ones, slopes in bits:
        p = mp.mpf("0.5") + (mp.mpf(mean) - mp.mpf("0.5")) * mp.mpf(slopes) / n
        total -= ones * mp.log(p) + (n - ones) * mp.log(1 - p)
    return total


def least_point(bits: list[tuple[float, float, float]], near: float) -> mp.mpf:
    """Where the misfit is least, within the ends that estimates have."""

    def slope(mean: mp.mpf) -> mp.mpf:
        total = mp.mpf(0)
        for n, ones, slopes in bits:
            p = mp.mpf("0.5") + (mean - mp.mpf("0.5")) * mp.mpf(slopes) / n
            total += mp.mpf(slopes) / n * ((n - ones) / (1 - p) - ones / p)
        return total

    if slope(mp.mpf(LOW)) >= 0:
        return mp.mpf(LOW)
    if slope(mp.mpf(HIGH)) <= 0:
        return mp.mpf(HIGH)
    return mp.findroot(slope, (mp.mpf(near), mp.mpf(near) * (1 + mp.mpf("1e-9"))))


def bits_of(curator: Any, arm: int) -> list[tuple[float, float, float]]:
    """What the curator has counted of an arm."""
    kept = [(curator.counts[arm, k], curator.ones[arm, k], curator.slopes[arm, k]) for k in range(curator.used[0])]
    return [bits for bits in kept if bits[0] > 0.0]


@pytest.mark.parametrize("means", [(0.5, 0.5), (0.03, 0.031), (0.9, 0.89), (0.01, 0.0101), (0.99, 0.989)])
@pytest.mark.parametrize("levels", POPULATIONS)
def test_means_and_evidence_are_those_of_all_bits(levels: str, means: tuple[float, float]) -> None:
    """Through 40,000 bits of two arms, at 40 times; the exact evidence is against the exact largest mean."""
    rng, curator = np.random.default_rng(len(levels)), in_plain_python(BinnedBernoulli.start(2))
    kept: Any = curator
    expanded = [0, 0]
    with mp.workdps(40):
        for t in range(1, 40_001):
            arm, level = int(rng.random() < 0.4), POPULATIONS[levels][rng.integers(len(POPULATIONS[levels]))]
            bit = float(rng.random() < attenuate(means[arm], attenuation(level)))
            kept.add(arm, bit, level, rng)
            if t % 1000:
                continue
            found = [kept.mean(one) for one in range(2)]
            exact = [least_point(bits_of(kept, one), found[one]) for one in range(2)]
            assert max(abs(a - b) for a, b in zip(found, exact, strict=True)) < 1e-9
            low = int(found[1] < found[0])
            evidence = kept.evidence(low, found[low], found[1 - low])
            bits = bits_of(kept, low)
            assert abs(evidence - (misfit(bits, exact[1 - low]) - misfit(bits, exact[low]))) < EVIDENCE_MARGIN / 10
            expanded[0] += kept.near.changes[low] > 0
            expanded[1] += kept.near.covers(low, found[low], found[1 - low])
    assert expanded[0] > 20  # so it is the expansion that was right
    assert means != (0.5, 0.5) or expanded[1] > 10  # arms further apart are mostly beyond its reach


def test_evidence_keeps_its_digits_where_bits_are_hardly_attenuated_and_the_largest_mean_is_1() -> None:
    """1 minus the probability of a one is about 1e-9 there."""
    curator: Any = in_plain_python(BinnedBernoulli.start(2))
    for number in range(56):
        curator.add(0, float(number % 3 == 0), 35.0, None)
        curator.add(1, 1.0, 35.0, None)
    low, high = curator.mean(0), curator.mean(1)
    assert high == HIGH
    with mp.workdps(40):
        exact = misfit(bits_of(curator, 0), high) - misfit(bits_of(curator, 0), low)
        assert abs(curator.evidence(0, low, high) - exact) < EVIDENCE_MARGIN / 10


@pytest.mark.parametrize("seed", range(3))
def test_a_largest_mean_next_to_1_is_so_exact_that_the_evidence_of_its_rivals_is(seed: int) -> None:
    """Bits of weak levels allow a series that reaches far, but the evidence of a rival magnifies the mean's error."""
    rng, curator = np.random.default_rng(seed), in_plain_python(BinnedBernoulli.start(2))
    kept: Any = curator
    for level in (0.4, 0.8, 1.2, 1.8, 40.0):
        ones = float(round(4000 * attenuate(0.6, attenuation(level))))
        kept.take(1, ones, 4000 - ones, attenuation(level))
    kept.settle(1)
    for number in range(1500):
        level = (0.4, 0.8, 1.2, 1.8)[rng.integers(4)]
        kept.add(0, float(rng.random() < attenuate(0.999, attenuation(level))), level, rng)
        if number < 150 or kept.near.changes[0] == 0 or number % 7:
            continue
        top = kept.mean(0)
        with mp.workdps(40):
            exact = float(least_point(bits_of(kept, 0), top))
        off = kept.evidence(1, kept.mean(1), top) - kept.evidence(1, kept.mean(1), exact)
        assert abs(off) < 3.0 * EVIDENCE_MARGIN


@pytest.mark.parametrize("point", [1e-6, 0.03, 0.4, 0.5, 0.6, 0.97, 1.0 - 1e-6])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize("slope", [0.001, 0.5, 1.0])
def test_where_the_series_says_that_it_is_right_it_is(point: float, share: float, slope: float) -> None:
    """At the largest distances that it allows, on both sides; bits of one kind leave out the most."""
    for n in (1.0, 100.0, 1e6):
        near = Expansion.start(1)
        near.begin(0, point)
        near.replace(0, NOTHING, (n, share * n, slope * n))
        room = near.rooms[0]
        low, high = 0.0, room  # bisection for the largest distance
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if near.reaches(0, middle) else (low, middle)
        assert low > 0.0
        with mp.workdps(40):
            bits, ends = [(n, share * n, slope * n)], (point - low, point + low)
            change = misfit(bits, ends[1]) - misfit(bits, ends[0])
            digits = 1e-15 / (slope * room)  # of 1/2 + (mean - 1/2) s, which is small where room is
            rounding = digits * (abs(change) + n * low / room)
            assert near.covers(0, point - low * (1 - 1e-6), point + low * (1 - 1e-6))
            assert abs(near.rise(0, *ends) - change) <= 2.0 * TOLERANCE + rounding


def test_what_is_left_out_comes_near_its_bound() -> None:
    """Bits of full attenuation and one kind: the ninth term is nearly the bound, so a series of 7 terms would fail."""
    near = Expansion.start(1)
    near.begin(0, 0.5)
    near.replace(0, NOTHING, (1e6, 0.0, 1e6))
    x = (9.0 * TOLERANCE / near.a8[0]) ** 0.125
    assert near.reaches(0, 0.999 * x)
    assert not near.reaches(0, 1.001 * x)
    with mp.workdps(40):
        off = abs(near.rise(0, 0.5, 0.5 + x) + 1e6 * mp.log(1 - 2 * mp.mpf(x)))
    assert 0.01 * TOLERANCE < off < TOLERANCE


def test_replacing_bits_is_taking_them_away_and_adding_others() -> None:
    rng, near = np.random.default_rng(0), Expansion.start(1)
    near.begin(0, 0.3)
    bits = (100.0, 20.0, 30.0)
    near.replace(0, NOTHING, bits)
    for _ in range(900):
        n, ones, slopes = bits
        more = (n + 1.0, ones + float(rng.random() < 0.4), slopes + rng.random())
        near.replace(0, bits, more)
        bits = more
    again = Expansion.start(1)
    again.begin(0, 0.3)
    again.replace(0, NOTHING, bits)
    assert near.rooms[0] <= again.rooms[0]  # that of all bits that have been there
    near.rooms[0] = again.rooms[0]
    np.testing.assert_allclose(near[:-2], again[:-2], rtol=1e-11, atol=1e-9)


def test_an_expansion_is_computed_anew_after_a_thousand_bits() -> None:
    curator, rng, renewed = in_plain_python(BinnedBernoulli.start(1)), np.random.default_rng(0), 0
    kept: Any = curator
    for _ in range(5000):
        before = kept.near.changes[0]
        kept.add(0, float(rng.random() < 0.5), float(rng.integers(1, 25)) / 4.0, rng)
        renewed += before >= 1000 and kept.near.changes[0] == 1
    assert renewed >= 3


def test_taking_no_bits_changes_nothing() -> None:
    """Also in a bin that has none of this arm."""
    curator, rng = in_plain_python(BinnedBernoulli.start(1)), np.random.default_rng(0)
    kept: Any = curator
    for number in range(400):
        kept.add(0, float(rng.random() < 0.3), (0.5, 1.0, 2.0, 4.0)[number % 4], rng)
    before = kept.mean(0)
    assert kept.near.changes[0] > 0
    kept.take(0, 0.0, 0.0, attenuation(0.1))
    kept.settle(0)
    assert kept.mean(0) == pytest.approx(before, rel=1e-12)


def test_an_arm_without_ones_keeps_the_least_estimate() -> None:
    """Its misfit has no least point. The series says so, too."""
    curator: Any = in_plain_python(BinnedBernoulli.start(1))
    for number in range(400):
        curator.add(0, 0.0, 1.0 + number % 6, None)
        assert curator.mean(0) >= LOW
    assert curator.mean(0) == LOW
    assert curator.near.changes[0] > 0


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_a_mean_leaves_an_end_of_its_range_as_soon_as_the_bits_say_so(mean: float) -> None:
    """Against the search through all bits, where the mean is at the end for some bits, and next to it for others."""
    curator, rng, ends = in_plain_python(BinnedBernoulli.start(1)), np.random.default_rng(0), [0, 0]
    kept: Any = curator
    for _ in range(4000):
        slope = attenuation(float(rng.integers(1, 17)) / 4.0)
        bit = float(rng.random() < attenuate(mean, slope))
        kept.take(0, bit, 1.0 - bit, slope)
        kept.settle(0)
        found, changes, waits = kept.mean(0), kept.near.changes[0], kept.near.waits[0]
        kept.near.changes[0] = kept.near.waits[0] = 0
        exact = kept.mean(0)
        assert abs(found - exact) < 1e-11
        kept.near.changes[0], kept.near.waits[0] = changes, waits
        if changes > 0:
            ends[found in (LOW, HIGH)] += 1
    assert min(ends) > 100  # both kinds by the series


@pytest.mark.parametrize("mean", [0.0, 1e-4, 0.003, 0.5, 0.999, 1.0])
def test_few_bits_need_a_new_expansion(mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an arm pays nearly always or nearly never, and an expansion is right for few bits."""
    expand, made = BinnedBernoulli.expand_about, [0]

    def counted(self: BinnedBernoulli, arm: int, point: float) -> None:
        made[0] += 1
        expand(self, arm, point)

    monkeypatch.setattr(BinnedBernoulli, "expand_about", counted)
    curator, rng = in_plain_python(BinnedBernoulli.start(1)), np.random.default_rng(0)
    for _ in range(4000):
        level = float(rng.integers(1, 25)) / 4.0
        curator.add(0, float(rng.random() < attenuate(mean, attenuation(level))), level, rng)
    assert made[0] < 400


def test_means_are_right_to_twelve_digits_after_many_bits_of_others() -> None:
    """An arm with many bits against one with few, whose mean moves far for each of its bits."""
    levels, worst = (0.3, 0.6, 1.0, 2.0, 3.0, 6.0), 0.0
    for seed in range(20):
        rng, curator = np.random.default_rng(seed), in_plain_python(BinnedBernoulli.start(2))
        kept: Any = curator
        for slope in map(attenuation, levels):
            ones = float(rng.binomial(50_000, attenuate(0.4, slope)))
            kept.take(0, ones, 50_000 - ones, slope)
        kept.settle(0)
        for _ in range(150):
            level = levels[rng.integers(6)]
            kept.add(1, float(rng.random() < attenuate(0.41, attenuation(level))), level, rng)
            found, changes = kept.mean(1), kept.near.changes[1]
            kept.near.changes[1] = 0
            worst = max(worst, abs(found - kept.mean(1)))
            kept.near.changes[1] = changes
    assert worst < 2e-12


def test_a_line_below_every_estimate_ends_no_stint() -> None:
    """As one by one: the mean of an arm without ones is the least estimate, which is above this line."""
    curator: Any = BinnedBernoulli.start(1)
    for _ in range(100):
        curator.add(0, 0.0, 1.0, None)
    assert curator.slack(0, LOW / 2.0) == np.inf
    assert curator.slack(0, 2.0 * LOW) < 0.0
