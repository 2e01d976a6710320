"""Any index in the framework of Azize & Basu 2022: their Theorem 11, and what its argument gives for other indices.

AdaC-UCB meets the conditions of Theorem 11. The bounds for IMED and MOSS follow its proof. An arm is played again only
at the start of an episode. Then either its own private mean is high, or the index of the best arm is low. Two things
differ. Indices grow with time, and the start of the episode of round t is at least t/2, so no union over the start is
needed; and the probabilities of high and low private means are bounded by ``numerics.chernoff`` instead of a confidence
that must shrink like t^-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from dpbandits.bounds.bound import Curve, DoesNotHold, theorem
from dpbandits.bounds.problem import Problem
from dpbandits.checks import at_least
from dpbandits.curators import GaussianBatch
from dpbandits.numerics import chernoff, kl_lower, positive_log
from dpbandits.policies.adac_ucb import DELTA, IMPLIED

__all__ = ["adac_ucb", "adap_imed", "adap_moss", "framework_pulls"]

SOURCE = "ours, by the argument of Azize & Basu 2022, Theorem 11"
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of a gap, by which the best arm's index may be too low


def framework_pulls(horizon: int, failure: Callable[[int], float], *, alpha: float = 3.1) -> float:
    """Theorem 11 of Azize & Basu 2022: the most plays, on average, of a suboptimal arm under any index.

    It is the least 2^(l+1) + failure(2^l) T + alpha / (alpha - 3) over l, where ``failure(s)`` bounds the probability
    that the arm's index at the horizon, from s rewards, is at least the best mean. The arm with the largest index must
    be played, the index must grow with time, and it must be below the arm's mean with probability at most 3/2 t^-alpha
    for every t and s, for an alpha > 3. The proof counts t/2 starts of an episode where there are t/2 + 1, and needs
    none of them, because the index grows; its remainder holds.

    >>> import math
    >>> round(framework_pulls(10**6, lambda s: math.exp(-0.02 * s)), 1)
    1090.7
    """
    horizon = at_least("horizon", horizon, 2)
    if alpha <= 3:
        raise DoesNotHold(f"alpha must be above 3, and is {alpha:g}")
    sizes = [1 << k for k in range(int(horizon).bit_length()) if 1 << k < horizon]
    return min(2.0 * size + min(failure(size), 1.0) * horizon for size in sizes) + alpha / (alpha - 3.0)


@theorem(
    Problem,
    "upper",
    "ours, by Azize & Basu 2022, Theorem 11",
    "rewards in [0, 1]; alpha > 3; every horizon",
    policies=("adac-ucb",),
    form="corrected",
    trust="central",
    note="Azize & Basu 2024 state 8 alpha / gap * log T + 8 sqrt(alpha log T / rho) and a constant, which is at least "
    "this; their proof was not available. If rho is not given, the largest rho that implies (epsilon, delta)-privacy "
    "is used",
)
def adac_ucb(problem: Problem, alpha: float = 3.1, delta: float = DELTA, rho: float | str = IMPLIED) -> Curve:
    """sum 4 (alpha log T + sqrt((alpha log T)^2 + 4 alpha log T gap^2 / rho)) / gap + gap (1 + alpha / (alpha - 3)).

    A private mean of n rewards is sub-Gaussian with variance V = 1/(4n) + 1/(2 rho n^2), and its index is the mean +
    sqrt(2 V alpha log t). So the index is below the arm's mean with probability at most t^-alpha. From the n on at
    which 8 V alpha log T = gap^2, the index of a worse arm reaches the best mean with probability at most T^-alpha.
    Theorem 11 then allows 2^(l+1) + 1 + alpha / (alpha - 3) plays, 2^l < 2n being the first episode as long as n.

    >>> round(adac_ucb(Problem.bernoulli([0.9, 0.6], 10**5, epsilon=1.0)).value)
    1053
    """
    problem.need_unit_rewards()
    if alpha <= 3:
        raise DoesNotHold(f"alpha must be above 3, and is {alpha:g}")
    made = GaussianBatch.start(
        1, epsilon=problem.one_epsilon(), delta=delta, rho=None if rho == IMPLIED else float(rho)
    )

    def curve(horizon: float) -> float:
        cost = alpha * positive_log(horizon)
        enough = ((cost + math.sqrt(cost * (cost + 4.0 * gap * gap / made.rho))) / gap**2 for gap in problem.gaps)
        plays = (max(4.0 * n, 2.0) + 1.0 + alpha / (alpha - 3.0) for n in enough)
        return sum(gap * most for gap, most in zip(problem.gaps, plays, strict=True))

    return curve


@theorem(
    Problem,
    "upper",
    SOURCE,
    "rewards in [0, 1]; any alpha; every horizon",
    policies=("adap-imed",),
    form="corrected",
    trust="central",
    note="Theorem 11 itself does not apply: IMED does not play the arm with the largest index, and its private mean is "
    "raised by the noise's width alone, so it is not above the mean with probability 1 - t^-alpha. Where epsilon is "
    "large against alpha times the gap, the bound grows faster than log T",
)
def adap_imed(problem: Problem, alpha: float = 3.1) -> Curve:
    """sum gap E[plays while the best arm looks good] + what is lost while it looks bad, in numbers.

    Let c be the raised means, and let an episode of arm a start at time t, after one of s rewards. IMED then has
    s kl(c_a, max c) + log s <= log t. If c of the best arm is at least best - z, with z a share of the gap, then
    c_a >= kl_lower(best - z, log(T/s)/s), which the private mean reaches with the probability that ``chernoff`` bounds.
    Otherwise the best arm looks bad: in round t, for some s, its private mean is below best - z - alpha log(t/2) /
    (epsilon s). Nothing is assumed about the size of alpha.

    >>> round(adap_imed(Problem.bernoulli([0.75, 0.25], 10**5, epsilon=0.25)).value)
    562
    """
    problem.need_unit_rewards()
    epsilon = problem.one_epsilon()

    def played(mean: float, best: float, share: float, horizon: float) -> float:
        threshold, log = best - share * (best - mean), positive_log(horizon)

        def chance(size: float) -> float:
            least = kl_lower(threshold, positive_log(horizon / size) / size)
            return 1.0 if least <= 0.0 else _above(mean, least - alpha * log / (epsilon * size), size, epsilon)

        return _plays(chance, horizon)

    @cache
    def chance_from(best: float, depth: float, start: float) -> float:
        log = positive_log(0.5 * start)
        thresholds = ((size, best - depth - alpha * log / (epsilon * size)) for size in _sizes(2.0 * start))
        return min(math.fsum(_below(best, threshold, size, epsilon) for size, threshold in thresholds), 1.0)

    def looks_bad(best: float, depth: float, horizon: float) -> float:
        total, start = 0.0, 1.0
        while start <= horizon:
            total += (min(2.0 * start - 1.0, horizon) - start + 1.0) * chance_from(best, depth, start)
            start *= 2.0
        return total

    return _curve(problem, played, looks_bad)


@theorem(
    Problem,
    "upper",
    SOURCE,
    "rewards in [0, 1]; the horizon that the policy was made for",
    policies=("adap-moss",),
    form="corrected",
    trust="central",
    note="Theorem 11 itself does not apply: the bonus of MOSS shrinks to 0 as an arm is played T/K times, so its index "
    "is not above the mean with probability 1 - t^-alpha for any alpha",
)
def adap_moss(problem: Problem) -> Curve:
    """sum gap E[plays while the best arm looks good] + T times what a lower index of the best arm can cost, in numbers.

    The index of an arm after an episode of s rewards is its private mean plus b(s), and does not change with time. Let
    Z be by how much the best arm's index is ever below the best mean. An arm whose gap is above Z over the share is
    played again only if its private mean is at least best - share gap - b(s). The others lose at most T times the
    largest of their gaps.

    >>> round(adap_moss(Problem.bernoulli([0.75, 0.25], 10**5, epsilon=0.25)).value)
    273
    """
    problem.need_unit_rewards()
    epsilon, arms = problem.one_epsilon(), problem.arms

    def bonus(size: float, horizon: float) -> float:
        log = 2.0 * positive_log(horizon / (arms * size))
        return math.sqrt(log / (2.0 * size)) + log / (epsilon * size)

    def played(mean: float, best: float, share: float, horizon: float) -> float:
        threshold = best - share * (best - mean)
        return _plays(lambda size: _above(mean, threshold - bonus(size, horizon), size, epsilon), horizon)

    def looks_bad(best: float, depth: float, horizon: float) -> float:
        chance = sum(_below(best, best - depth - bonus(size, horizon), size, epsilon) for size in _sizes(horizon))
        return horizon * min(chance, 1.0)

    return _curve(problem, played, looks_bad)


def _curve(
    problem: Problem,
    played: Callable[[float, float, float, float], float],
    looks_bad: Callable[[float, float, float], float],
) -> Curve:
    """The sum of both parts, with the best share for each horizon.

    In a round in which the best arm looks worse by Z than it is, an arm with a gap above Z/share is played only as
    ``played`` counts. The others lose at most the largest of their gaps: the sum of the steps between neighbouring gaps
    whose upper end is at most Z/share.
    """
    best, gaps = problem.best, sorted(set(problem.gaps))
    steps = [high - low for low, high in pairwise([0.0, *gaps])]

    def at(horizon: float, share: float) -> float:
        good = sum((best - mean) * played(mean, best, share, horizon) for mean in problem.means if mean < best)
        bad = sum(step * looks_bad(best, share * gap, horizon) for step, gap in zip(steps, gaps, strict=True))
        return good + bad

    most = gaps[-1] if gaps else 0.0
    return lambda horizon: min(most * horizon, *(at(horizon, share) for share in SHARES))


def _sizes(horizon: float) -> list[float]:
    """The lengths of an arm's episodes within this many rounds, but for the last: 1, 1, 2, 4, ..."""
    return [1.0, *(2.0**k for k in range(int(math.log2(max(horizon, 1.0))) + 1))]


def _plays(chance: Callable[[float], float], horizon: float) -> float:
    """The most plays on average, if an arm is played again after an episode of this size with this probability."""
    plays, grown = 1.0, 1.0
    for size in _sizes(horizon):
        plays += grown * min(chance(size), 1.0)  # as many plays as there were before
        grown *= 2.0
        if grown > horizon:
            break
    return min(plays, horizon)


def _above(mean: float, threshold: float, size: float, epsilon: float) -> float:
    """An upper bound on the probability that a private mean of ``size`` rewards is at least ``threshold``."""
    return math.exp(-chernoff(size, threshold, mean, 1.0, epsilon)[0])


def _below(mean: float, threshold: float, size: float, epsilon: float) -> float:
    """An upper bound on the probability that it is at most ``threshold``."""
    return _above(1.0 - mean, 1.0 - threshold, size, epsilon)
