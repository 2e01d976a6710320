"""A confidence interval for the mean reward of an arm, from its releases and nothing else."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from dpbandits.checks import fraction
from dpbandits.curators.batch import Batch, GaussianBatch
from dpbandits.curators.heterogeneous import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.curators.hybrid import Hybrid, HybridOfAll
from dpbandits.curators.interval import Interval
from dpbandits.curators.kept_batches import Batches
from dpbandits.curators.lazy import Lazy
from dpbandits.curators.leveled import BinnedBernoulli, WeightedBernoulli, WeightedLaplace
from dpbandits.curators.local import LocalBernoulli, LocalLaplace
from dpbandits.curators.piecewise import LocalPiecewise
from dpbandits.curators.plain import Plain
from dpbandits.curators.tree import Tree
from dpbandits.errors import InputError
from dpbandits.mechanisms import response_probability
from dpbandits.numerics import GRID, chernoff, kl_upper, sigmoid, top_bit, unit

__all__ = ["interval", "interval_of_any_stint", "noise", "of_rewards", "spread"]

WHOLE = (0.0, 1.0)
HALVINGS = 60


def interval(curator: Any, arm: int, beta: float = 0.05) -> tuple[float, float]:
    """An interval that contains the mean of an arm's rewards, mapped to [0, 1], with probability at least 1 - ``beta``.

    It holds whatever policy has chosen how often the arm was played, and however often one looks: the probability that
    it is ever wrong is at most ``beta``, for rewards in [0, 1] that do not depend on each other. It is post-processing
    of what was released, and costs no privacy. Where nothing was released of the arm, it is (0, 1). With ``sigmoid``
    it is about the mean of the logistic function of the rewards: see ``of_rewards``. For ``Batch`` and
    ``GaussianBatch`` at most two stints of an arm may have lengths from 2^j to 2^(j+1) - 1, for any j, as where lengths
    double; ``interval_of_any_stint`` needs no such condition.

    The idea is that of Lemmas 3 and 4 of Azize & Basu 2022, for a fixed number n of rewards: the private mean plus or
    minus sqrt(log(1/beta)/(2n)) + log(1/beta)/(epsilon n), or the same with kl. Here the law of rewards and noise
    together is bounded (``numerics.chernoff``), which is narrower. An arm's n depends on what was seen, which a lemma
    for fixed n does not allow; so the k-th release may fail with a share 1/(k (k + 1)) of beta, or the sample is
    bounded at all times at once (``spread``).

    For curators of your own: ``@confidence.found.register``.

    >>> import numpy as np
    >>> from dpbandits.curators import Batch
    >>> curator, rng = Batch.start(2, epsilon=1.0), np.random.default_rng(0)
    >>> for reward in [1.0, 0.0] * 512:
    ...     curator.add(0, reward, 0.0, rng)
    >>> curator.close(0, rng)
    >>> [round(end, 3) for end in interval(curator, 0)], interval(curator, 1)
    ([0.433, 0.568], (0.0, 1.0))
    """
    beta = fraction("beta", beta)
    if not curator.ready(arm, 0.0):
        return WHOLE
    return _rounded(*found(curator, arm, beta))


def interval_of_any_stint(curator: Any, arm: int, beta: float, releases: int) -> tuple[float, float]:
    """``interval`` for stints of any lengths: a stint may also close at a deadline, or when its arm is paused.

    ``releases`` is how many there were so far, of all arms. Where the mean is that of the last stint alone, release m
    of the whole run may fail with a share 1/(m (m + 1)) of beta. These shares sum to 1.
    """
    beta = fraction("beta", beta)
    if found.dispatch(type(curator)) is not _of_last_stint or not curator.ready(arm, 0.0):
        return interval(curator, arm, beta)
    return _rounded(*_last_stint(curator, arm, max(releases, 1) * (max(releases, 1) + 1.0), beta))


def of_rewards(ends: tuple[float, float]) -> tuple[float, float]:
    """From an interval for the mean of the logistic function of rewards in [0, 1], one for the mean of the rewards.

    The logistic function s is concave on [0, 1]. So E s(X) <= s(E X) by Jensen's inequality, and s is not below its
    chord: E s(X) >= 1/2 + (s(1) - 1/2) E X. The first gives the lower end, and the second the upper one.

    >>> [round(end, 3) for end in of_rewards((0.55, 0.6))], of_rewards((0.0, 1.0))
    ([0.201, 0.433], (0.0, 1.0))
    """
    zero, one = 0.5, sigmoid(1.0)
    low, high = (min(max(end, zero), one) for end in ends)
    return unit(math.log(low / (1.0 - low))), unit((high - zero) / (one - zero))


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Exact noise rounds rewards to the grid, which may move the mean by a step of it."""
    return unit(low - 1.0 / GRID), unit(high + 1.0 / GRID)


def spread(variance: float, missed: float) -> float:
    """A bound on the deviation of a sum of steps that holds at all times at once.

    Step i is in an interval of length r_i, and ``variance`` is the sum of r_i^2/4.

    The mixture bound for martingales (Robbins 1970; Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem 1): it does not
    matter that the policy decides when it plays an arm.

    >>> round(spread(2500.0, 0.025) / 10_000, 4)  # the mean of 10 000 rewards
    0.0204
    """
    return math.sqrt(2.0 * (variance + 0.25) * math.log(math.sqrt(4.0 * variance + 1.0) / missed))


def noise(count: int, squares: float, largest: float, missed: float) -> float:
    """A bound on the deviation of a sum of ``count`` Laplace noises.

    ``squares`` is the sum of their squared scales, and ``largest`` the largest scale.

    Chan, Shi & Song 2011, Corollary 2.9; a single noise has its own law.

    >>> round(noise(1, 1.0, 1.0, 0.025), 2), round(noise(100, 100.0, 1.0, 0.025), 1)  # one of scale 1, and a hundred
    (3.69, 59.2)
    """
    if count == 1:
        return largest * math.log(1.0 / missed)
    odds = math.log(2.0 / missed)
    return max(math.sqrt(squares), largest * math.sqrt(odds)) * math.sqrt(8.0 * odds)


@singledispatch
def found(curator: Any, arm: int, beta: float) -> tuple[float, float]:
    """The interval for an arm of which something was released."""
    name = type(curator).__name__
    raise InputError(
        "policy",
        f"has no known interval for the mean of an arm: its curator is {name}; add one with confidence.found",
    )


@found.register
def _of_last_stint(curator: Batch | GaussianBatch, arm: int, beta: float) -> tuple[float, float]:
    """At most two stints of an arm have lengths in one octave, from 2^j to 2^(j+1) - 1."""
    octave = top_bit(int(curator.counts[arm])) + 1.0
    return _last_stint(curator, arm, 2.0 * octave * (octave + 1.0), beta)


def _last_stint(curator: Batch | GaussianBatch, arm: int, weight: float, beta: float) -> tuple[float, float]:
    """From the last stint of an arm; it may fail with beta / weight."""
    n, mean = float(curator.counts[arm]), float(curator.means[arm])
    if isinstance(curator, Batch):
        return _ends(n, mean, 1.0, curator.epsilon, weight, beta)
    log = math.log(2.0 * weight / beta)  # sample and noise are sub-Gaussian, and their variances add up
    return _around(mean, math.sqrt(2.0 * log * (n / 4.0 + 1.0 / (2.0 * curator.rho))) / n)


@found.register
def _(curator: Lazy, arm: int, beta: float) -> tuple[float, float]:
    """The last buffer: one of each length 2^j."""
    n, octave = float(curator.counts[arm]), top_bit(int(curator.counts[arm])) + 1.0
    return _ends(n, float(curator.means[arm]), 1.0, curator.epsilon, octave * (octave + 1.0), beta)


@found.register
def _(curator: Plain, arm: int, beta: float) -> tuple[float, float]:
    n = float(curator.counts[arm])
    return _around(curator.mean(arm), spread(n / 4.0, beta) / n)


@found.register
def _(curator: Interval, arm: int, beta: float) -> tuple[float, float]:
    """The last release, with one noise."""
    n = float(curator.counts[arm])
    return _at_any_time(curator, arm, n, (1, n**curator.v, n ** (0.5 * curator.v)), beta)


@found.register
def _(curator: Tree, arm: int, beta: float) -> tuple[float, float]:
    """One noise for each open node: as many as n has ones in binary."""
    n, scale = int(curator.counts[arm]), curator.depth / curator.epsilon
    return _at_any_time(curator, arm, n, (n.bit_count(), n.bit_count() * scale * scale, scale), beta)


@found.register
def _(curator: HeterogeneousLaplace, arm: int, beta: float) -> tuple[float, float]:
    """Each response has a noise of scale 1/level, and levels are at least ``epsilon_min``."""
    n, squares = int(curator.counts[arm]), float(curator.variances[arm])
    return _at_any_time(curator, arm, n, (n, squares, 1.0 / curator.epsilon_min), beta)


@found.register
def _(curator: HeterogeneousBernoulli, arm: int, beta: float) -> tuple[float, float]:
    return _around(curator.mean(arm), spread(curator.variances[arm] / 4.0, beta) / float(curator.counts[arm]))


@found.register
def _(curator: WeightedBernoulli, arm: int, beta: float) -> tuple[float, float]:
    return _around(curator.mean(arm), spread(curator.weights[arm] / 4.0, beta) / float(curator.weights[arm]))


@found.register
def _(curator: BinnedBernoulli, arm: int, beta: float) -> tuple[float, float]:
    """A bit of attenuation s, less 1/2, has the mean s (mean - 1/2). Its weight is the middle of its bin."""
    bins, total, slopes, variance = len(curator.places), 0.0, 0.0, 0.0
    for number, place in enumerate(curator.places.tolist()):
        if place > 0:
            weight, n = (number + 0.5) / bins, float(curator.counts[arm, place - 1])
            total += weight * (float(curator.ones[arm, place - 1]) - 0.5 * n)
            slopes += weight * float(curator.slopes[arm, place - 1])
            variance += 0.25 * weight * weight * n
    return _around(0.5 + total / slopes, spread(variance, beta) / slopes)


@found.register
def _(curator: WeightedLaplace, arm: int, beta: float) -> tuple[float, float]:
    """The mean of weighted responses is off by a sum of steps, divided by the sum W of the weights.

    A response of weight w <= 1 adds w times a reward, an interval of length w, and Laplace noise of scale b with
    b^2 = w (1 - w)/8 <= 1/32. The logarithm of E exp(l step) is at most l^2 w/8 for the reward (Hoeffding), and
    -log(1 - l^2 b^2) <= 2 l^2 b^2 <= l^2 w/4 for the noise if |l| <= 4. So exp(l sum - 3/8 l^2 W) is a supermartingale,
    and at no time is |sum| above 3/8 l W + log(2/beta)/l (Ville's inequality), except with probability beta. Each
    octave of W has an l of its own, and a share 1/((k + 1)(k + 2)) of beta; octave 0 holds all W below 2.
    """
    total = float(curator.weights[arm])
    octave = max(math.floor(math.log2(total)), 0) if total > 0.0 else 0
    log = math.log(2.0 * (octave + 1.0) * (octave + 2.0) / beta)
    rate = min(4.0, math.sqrt(8.0 / 3.0 * log / 2.0**octave))
    return _around(curator.mean(arm), 0.375 * rate + log / (rate * total))


@found.register
def _(curator: LocalPiecewise, arm: int, beta: float) -> tuple[float, float]:
    """Every debiased response is in an interval of length ``reach``."""
    n, reach = float(curator.counts[arm]), curator.reach()
    return _around(curator.mean(arm), spread(n * reach * reach / 4.0, beta) / n)


@found.register
def _(curator: Batches, arm: int, beta: float) -> tuple[float, float]:
    """The sum of all k batches, with k noises."""
    n, k = float(curator.counts[arm]), float(curator.batches[arm])
    return _ends(n, float(curator.average(arm)), k, curator.epsilon, k * (k + 1.0), beta)


@found.register
def _(curator: LocalLaplace, arm: int, beta: float) -> tuple[float, float]:
    """The sum of n responses, with n noises."""
    n = float(curator.counts[arm])
    return _ends(n, float(curator.mean(arm)), n, curator.epsilon, n * (n + 1.0), beta)


@found.register
def _(curator: LocalBernoulli, arm: int, beta: float) -> tuple[float, float]:
    """The bits: n kl(mean, p) <= log(2 sqrt n / beta) at all times, as in ``BitsTest``; p is then mapped back."""
    n, mean = float(curator.counts[arm]), float(curator.mean(arm))
    budget = (math.log(2.0 / beta) + 0.5 * math.log(n)) / n
    none, sure = response_probability(0.0, curator.epsilon), response_probability(1.0, curator.epsilon)
    low, high = 1.0 - kl_upper(1.0 - mean, budget), kl_upper(mean, budget)
    return (low - none) / (sure - none), (high - none) / (sure - none)


@found.register
def _(curator: Hybrid, arm: int, beta: float) -> tuple[float, float]:
    """One counter for each arm, fed when it is played."""
    return _counted(curator, arm, int(curator.counts[arm]), beta)


@found.register
def _(curator: HybridOfAll, arm: int, beta: float) -> tuple[float, float]:
    """One counter for each arm, fed in every round."""
    return _counted(curator, arm, sum(map(int, curator.counts)), beta)


def _counted(curator: Hybrid, arm: int, items: int, beta: float) -> tuple[float, float]:
    """Tossou & Dimitrakakis 2016, Eq. (2.2), with each part's own epsilon and log2 of the items as depth, and
    Hoeffding's bound for the rewards.

    The release after this many items may fail with a share 1/(items (items + 1)) of beta, half of it for the noise.
    Their bound needs log(4/gamma) to be at least the depth plus 1.
    """
    n, depth = float(curator.counts[arm]), float(top_bit(items))
    share = beta / (2.0 * items * (items + 1.0))
    log = max(math.log(4.0 / share), depth + 1.0)
    drawn = math.sqrt(8.0) * log * (1.0 / curator.epsilon_log + depth / curator.epsilon_tree)
    return _around(curator.mean(arm), math.sqrt(math.log(2.0 / share) / (2.0 * n)) + drawn / n)


def _at_any_time(
    curator: Any, arm: int, n: float, noises: tuple[int, float, float], beta: float
) -> tuple[float, float]:
    """Around a mean of n rewards: half of beta is for the sample, half for the noise of all releases, by their n.

    ``noises`` are those of the mean, as ``noise`` takes them: their number, and of their scales the sum of squares and
    the largest.
    """
    width = (spread(n / 4.0, beta / 2.0) + noise(*noises, beta / (2.0 * n * (n + 1.0)))) / n
    return _around(curator.mean(arm), width)


def _around(mean: float, width: float) -> tuple[float, float]:
    return float(mean) - width, float(mean) + width


def _ends(n: float, mean: float, noises: float, epsilon: float, weight: float, beta: float) -> tuple[float, float]:
    """All means that make a released one not too improbable; each side may fail with beta / (2 weight)."""
    needed = math.log(2.0 * weight / beta)
    high = 1.0 - _least(n, 1.0 - mean, noises, epsilon, needed)
    return _least(n, mean, noises, epsilon, needed), high


def _least(n: float, mean: float, noises: float, epsilon: float, needed: float) -> float:
    """The least true mean at which a release of ``mean`` is not too high, rounded down; 1 if there is none."""
    low, high = 0.0, 1.0
    if chernoff(n, mean, high, noises, epsilon)[0] > needed:
        return 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if chernoff(n, mean, middle, noises, epsilon)[0] > needed:
            low = middle
        else:
            high = middle
    return low
