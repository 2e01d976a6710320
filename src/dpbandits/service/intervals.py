"""Intervals for the means in a summary: how far the sample may be from the mean, and the noise from nothing.

What a policy adds to its index is not taken: some papers choose it by experiment, some add nothing. Here both errors
are bounded by what is known for sure, each with half of the probability.

* The sample: rewards or bits, each in an interval of known length. By the mixture bound for martingales (Robbins 1970;
  Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem 1) the deviation of their sum is at most ``spread`` at all times at
  once. So it does not matter that the policy decides when it plays an arm.
* The noise: the number and the scales of the Laplace noises in the released sum are known. The deviation of their sum
  is at most ``noise`` (Chan, Shi & Song 2011, Corollary 2.9). For a release that is made at every response this is
  asked of each count n with the share 1/(n (n + 1)) of the probability, and so of all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from dpbandits import curators
from dpbandits.mechanisms import attenuation
from dpbandits.numerics import GRID, top_bit

__all__ = ["half_width", "noise", "spread"]

Scales = Sequence[tuple[float, int]]  # of Laplace noises, and how many have it


def spread(variance: float, missed: float) -> float:
    """What a sum of steps deviates by at any time, where step i is in an interval of length r; variance = sum of r^2/4.

    >>> round(spread(2500.0, 0.025) / 10_000, 4)  # the mean of 10 000 rewards
    0.0204
    """
    return math.sqrt(2.0 * (variance + 0.25) * math.log(math.sqrt(4.0 * variance + 1.0) / missed))


def noise(scales: Scales, missed: float) -> float:
    """What a sum of Laplace noises deviates by.

    >>> round(noise([(1.0, 1)], 0.025), 2), round(noise([(1.0, 100)], 0.025), 1)
    (3.69, 59.2)
    """
    scales = [(scale, number) for scale, number in scales if number > 0]
    if not scales:
        return 0.0
    largest = max(scale for scale, _ in scales)
    if sum(number for _, number in scales) == 1:
        return largest * math.log(1.0 / missed)
    odds = math.log(2.0 / missed)
    size = max(math.sqrt(sum(number * scale * scale for scale, number in scales)), largest * math.sqrt(odds))
    return size * math.sqrt(8.0 * odds)


def half_width(curator: Any, arm: int, missed: float) -> float | None:
    """How far the mean of an arm may be from what was released, for rewards in [0, 1]; None where nothing is proved."""
    found = _half_width(curator, arm, missed / 2.0)
    return None if found is None else found + 1.0 / GRID  # rewards are rounded to the grid


def _at_any_time(n: float, scales: Scales, missed: float) -> float:
    """Of a mean of n rewards, where what was released before decides about n."""
    return (spread(n / 4.0, missed) + noise(scales, missed / (n * (n + 1.0)))) / n


def _at_fixed_size(n: float, deviation: float, missed: float) -> float:
    """Of a mean of n rewards, where n is known before they come (Hoeffding 1963)."""
    return math.sqrt(math.log(2.0 / missed) / (2.0 * n)) + deviation / n


@singledispatch
def _half_width(curator: Any, arm: int, missed: float) -> float | None:
    return None


@_half_width.register
def _(curator: curators.Plain, arm: int, missed: float) -> float:
    return _at_any_time(curator.samples(arm, 0), [], missed)


@_half_width.register(curators.Batch)
@_half_width.register(curators.Lazy)
def _(curator: Any, arm: int, missed: float) -> float:
    return _at_fixed_size(curator.counts[arm], noise([(1.0 / curator.epsilon, 1)], missed), missed)


@_half_width.register
def _(curator: curators.GaussianBatch, arm: int, missed: float) -> float:
    deviation = math.sqrt(math.log(2.0 / missed) / curator.rho)  # the variance is 1 / (2 rho)
    return _at_fixed_size(curator.counts[arm], deviation, missed)


@_half_width.register
def _(curator: curators.Interval, arm: int, missed: float) -> float:
    n = float(curator.counts[arm])
    return _at_any_time(n, [(n ** (0.5 * curator.v), 1)], missed)


@_half_width.register
def _(curator: curators.Tree, arm: int, missed: float) -> float:
    n = int(curator.counts[arm])
    return _at_any_time(n, [(curator.depth / curator.epsilon, n.bit_count())], missed)


@_half_width.register
def _(curator: curators.Hybrid, arm: int, missed: float) -> float:
    n = int(curator.counts[arm])
    return _at_any_time(n, _of_hybrid(curator, n), missed)


@_half_width.register
def _(curator: curators.HybridOfAll, arm: int, missed: float) -> float:
    n, rounds = int(curator.counts[arm]), int(sum(curator.counts))
    deviation = noise(_of_hybrid(curator, rounds), missed / (rounds * (rounds + 1.0)))
    return (spread(n / 4.0, missed) + deviation) / n


def _of_hybrid(curator: Any, items: int) -> Scales:
    """One noise for each block that is closed, one for each open node of the tree over the items since."""
    k = top_bit(items)
    return [(1.0 / curator.epsilon_log, k + 1), (k / curator.epsilon_tree, (items - (1 << k)).bit_count())]


@_half_width.register
def _(curator: curators.RunningSum, arm: int, missed: float) -> float | None:
    stints, most = int(curator.batches[arm]), curator.sizes.shape[1]
    n = float(curator.counts[arm])
    return None if stints == most else _at_any_time(n, [(1.0 / curator.epsilon, stints)], missed)


@_half_width.register
def _(curator: curators.LocalLaplace, arm: int, missed: float) -> float:
    n = int(curator.counts[arm])
    return _at_any_time(n, [(1.0 / curator.epsilon, n)], missed)


@_half_width.register
def _(curator: curators.LocalBernoulli, arm: int, missed: float) -> float:
    n = float(curator.counts[arm])
    return spread(n / 4.0, 2.0 * missed) / (n * attenuation(curator.epsilon))  # bits have no other error


@_half_width.register
def _(curator: curators.HeterogeneousBernoulli, arm: int, missed: float) -> float:
    return spread(curator.variances[arm] / 4.0, 2.0 * missed) / float(curator.counts[arm])


@_half_width.register
def _(curator: curators.WeightedBernoulli, arm: int, missed: float) -> float:
    return spread(curator.weights[arm] / 4.0, 2.0 * missed) / curator.weights[arm]
