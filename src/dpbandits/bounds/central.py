"""Bounds for central privacy: lower bounds for any policy, upper bounds for the AdaP policies (Azize & Basu 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from scipy.optimize import brentq

from dpbandits.bounds.bound import CONSISTENT, Curve, DoesNotHold, LongRun, theorem
from dpbandits.bounds.divergences import above_mean, d_eps, towards_best
from dpbandits.bounds.problem import Problem
from dpbandits.checks import positive
from dpbandits.errors import InputError
from dpbandits.numerics import positive_log

__all__ = [
    "adap_klucb",
    "adap_klucb_printed",
    "adap_ucb",
    "adap_ucb_minimax",
    "adap_ucb_minimax_printed",
    "adap_ucb_printed",
    "dp_lower",
    "dp_lower_bernoulli",
    "dp_minimax_lower",
    "dp_minimax_lower_printed",
    "kl_decomposition",
    "lai_robbins",
    "private_rate",
]

AZIZE = "Azize & Basu 2022"
LARGE_ALPHA = "rewards in [0, 1]; alpha > 3; every horizon"


@theorem(
    Problem,
    "lower",
    "Lai & Robbins 1985; Burnetas & Katehakis 1996",
    f"private or not, {CONSISTENT}",
    note="the cost of learning without privacy; privacy adds to it",
)
def lai_robbins(problem: Problem) -> Curve:
    """sum gap / d_inf * log T: the least regret without privacy.

    >>> round(lai_robbins(Problem.bernoulli([0.8, 0.1, 0.1, 0.1, 0.1], 10**7)).value, 1)
    39.4
    """
    problem.need_room()
    rate = sum((problem.best - problem.means[arm]) / problem.kl_gap(arm) for arm in problem.worse)
    return LongRun(rate)


@theorem(
    Problem,
    "lower",
    f"{AZIZE}, Theorem 2",
    "any epsilon-private policy; the hardest problem with the same number of arms; horizon of at least arms - 1",
    trust="central",
    scope="some problem",
    note="proven with normal rewards of unbounded means; false for rewards in [0, 1], where it can exceed what random "
    "play loses: see dp-minimax-lower",
)
def dp_minimax_lower_printed(problem: Problem) -> Curve:
    """max(sqrt(T (K - 1)) / 27, (K - 1) / (131 epsilon)), for normal rewards of variance 1 and any means.

    >>> round(dp_minimax_lower_printed(Problem.gaussian([0.5] * 101, 100, epsilon=0.001)).value, 1)
    763.4
    """
    problem.need("normal")
    if problem.sd != 1.0:
        raise DoesNotHold(f"the standard deviation must be 1, and is {problem.sd:g}")
    epsilon, others = problem.one_epsilon(), problem.arms - 1

    def curve(horizon: float) -> float:
        if others < 1 or horizon < others:
            raise DoesNotHold(f"arms must be from 2 to horizon + 1, and are {problem.arms}")
        return max(math.sqrt(horizon * others) / 27.0, others / (131.0 * epsilon))

    return curve


@theorem(
    Problem,
    "lower",
    f"{AZIZE}, Theorem 2",
    "any epsilon-private policy; the hardest problem with the same number of arms; horizon of at least arms - 1",
    form="corrected",
    corrects="dp-minimax-lower-printed",
    trust="central",
    scope="some problem",
    note="proven again for rewards in [0, 1], with Bernoulli arms; the printed proof needs normal rewards of unbounded "
    "means",
)
def dp_minimax_lower(problem: Problem) -> Curve:
    """max(sqrt(T (K - 1)) / 27, min(T / (16 e), (K - 1) / (96 e epsilon))) for rewards in [0, 1].

    The private term repeats the paper's proof with Bernoulli arms. One arm has mean 1/2, all others 1/2 - g. In a
    second problem, the arm that the policy plays least often, at most T / (K - 1) times on average, has mean 1/2 + g
    instead. A policy that plays the first arm in at most half of the rounds loses g T / 2 in the first problem, and
    otherwise in the second. By Bretagnolle & Huber the two probabilities add up to at least e^-KL / 2, so one of the
    regrets is at least g T e^-KL / 8. The changed arm has a total variation of 2 g, so KL <= 6 epsilon 2 g T / (K - 1)
    by Theorem 10. With g = min(1/2, (K - 1) / (12 epsilon T)) this is at most 1.

    The other term holds without privacy: Auer, Cesa-Bianchi, Freund & Schapire 2002, Theorem 5.1 gives
    min(sqrt(K T), T) / 20 with Bernoulli arms, which is more.

    >>> problem = Problem.bernoulli([0.5] * 101, 100, epsilon=0.001)
    >>> round(dp_minimax_lower(problem).value, 2), round(100 * problem.horizon / 101, 2)  # random play loses at most
    (3.7, 99.01)
    """
    problem.need_unit_rewards()
    epsilon, others = problem.one_epsilon(), problem.arms - 1

    def curve(horizon: float) -> float:
        if others < 1 or horizon < others:
            raise DoesNotHold(f"arms must be from 2 to horizon + 1, and are {problem.arms}")
        private = min(horizon / (16.0 * math.e), others / (96.0 * math.e * epsilon))
        return max(math.sqrt(horizon * others) / 27.0, private)

    return curve


@theorem(
    Problem,
    "lower",
    f"{AZIZE}, Theorem 3",
    f"any epsilon-private, {CONSISTENT}",
    trust="central",
    note="for Bernoulli rewards dp-lower-bernoulli is sharper",
)
def dp_lower(problem: Problem) -> Curve:
    """sum gap / min(d_inf, 6 epsilon t_inf) * log T, for Bernoulli, normal, or any rewards in [0, 1].

    >>> fig_3 = [0.8, 0.1, 0.1, 0.1, 0.1]
    >>> [round(dp_lower(Problem.bernoulli(fig_3, 10**7, epsilon=e)).value, 1) for e in (0.05, 0.1, 0.2, 1)]
    [214.9, 107.5, 53.7, 39.4]
    """
    problem.need_room()
    epsilon = problem.one_epsilon()
    rate = 0.0
    for arm in problem.worse:
        information = min(problem.kl_gap(arm), 6.0 * epsilon * problem.tv_gap(arm))
        rate += (problem.best - problem.means[arm]) / information
    return LongRun(rate)


@theorem(
    Problem,
    "lower",
    "Azize, Wu, Honda, Orabona, Ito & Basu 2025",
    f"Bernoulli rewards; any epsilon-private, {CONSISTENT}",
    trust="central",
    note="the paper says that it can be reached, up to the ratio of the batches; the proof was not available",
    checked=False,
)
def dp_lower_bernoulli(problem: Problem) -> Curve:
    """sum gap / d_eps(mean, best) * log T: at least Theorem 3, because d_eps <= min(kl, epsilon gap).

    >>> fig_3 = [0.8, 0.1, 0.1, 0.1, 0.1]
    >>> [round(dp_lower_bernoulli(Problem.bernoulli(fig_3, 10**7, epsilon=e)).value) for e in (0.05, 0.5, 10)]
    [1297, 138, 39]
    """
    problem.need("bernoulli")
    problem.need_room()
    return LongRun(private_rate(problem))


def private_rate(problem: Problem) -> float:
    """sum gap / d_eps(mean, best): what each arm must cost in the long run, for each unit of log T.

    >>> round(private_rate(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1.0)), 4)
    1.2426
    """
    problem.need_unit_rewards()
    epsilon, best = problem.one_epsilon(), problem.best
    return sum((best - mean) / d_eps(mean, best, epsilon) for mean in problem.means if mean < best)


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, Theorem 7",
    LARGE_ALPHA,
    policies=("adap-ucb",),
    trust="central",
    note="not proven: Equation (32) replaces a sum by a maximum, and fails for 0.586 < gap/epsilon < 2",
    checked=False,
)
def adap_ucb_printed(problem: Problem, alpha: float = 3.1) -> Curve:
    """sum 16 alpha / min(gap, epsilon) * log T + 3 alpha / (alpha - 3).

    >>> round(adap_ucb_printed(Problem.bernoulli([0.75, 0.25], 1000, epsilon=0.25)).value)
    1463
    """
    epsilon, remainder = _adap(problem, alpha)
    rate = sum(16.0 * alpha / min(gap, epsilon) for gap in problem.gaps)
    return lambda horizon: rate * positive_log(horizon) + remainder * len(problem.gaps)


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, Theorem 7",
    LARGE_ALPHA,
    form="corrected",
    corrects="adap-ucb-printed",
    policies=("adap-ucb",),
    trust="central",
    note="Equation (32) solved exactly; in the printed form the constant would be 4 (3 + sqrt 5) = 20.94, not 16",
)
def adap_ucb(problem: Problem, alpha: float = 3.1) -> Curve:
    """sum 4 alpha / gap * (1 + 2 u + sqrt(1 + 4 u)) * log T + 3 alpha / (alpha - 3), with u = gap / epsilon.

    >>> round(adap_ucb(Problem.bernoulli([0.75, 0.25], 1000, epsilon=0.25)).value)
    1463
    """
    epsilon, remainder = _adap(problem, alpha)
    rate = 0.0
    for gap in problem.gaps:
        u = gap / epsilon
        rate += 4.0 * alpha / gap * (1.0 + 2.0 * u + math.sqrt(1.0 + 4.0 * u))
    return lambda horizon: rate * positive_log(horizon) + remainder * len(problem.gaps)


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, Theorem 8",
    "Bernoulli rewards; alpha > 3; every horizon",
    policies=("adap-klucb",),
    trust="central",
    note="the paper gives no numbers for C_1 and C_2; the infimum over beta that defines them is evaluated",
)
def adap_klucb_printed(problem: Problem, alpha: float = 3.1) -> Curve:
    """sum gap C_1 / min(kl, C_2 epsilon gap) * log T + 3 alpha / (alpha - 3), where C_1 / min(..) is four times the
    infimum over beta of max((1 + beta) alpha / kl(mean, best), (1 + alpha) / ((c(beta) - gamma) epsilon gap)).

    >>> round(adap_klucb_printed(Problem.bernoulli([0.75, 0.25], 1000, epsilon=0.25)).value)
    925
    """
    problem.need("bernoulli")
    epsilon, remainder = _adap(problem, alpha)

    def curve(horizon: float) -> float:
        total = remainder * len(problem.gaps)
        for arm, gap in zip(problem.worse, problem.gaps, strict=True):
            total += 4.0 * gap * _enough(problem.means[arm], gap, epsilon, alpha, positive_log(horizon))
        return total

    return curve


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, proof of Theorem 8",
    "Bernoulli rewards; alpha > 3; every horizon",
    form="corrected",
    corrects="adap-klucb-printed",
    policies=("adap-klucb",),
    trust="central",
    note="the bound that the proof derives: episodes are powers of two, so 2^(l+1) replaces four times the infimum",
)
def adap_klucb(problem: Problem, alpha: float = 3.1) -> Curve:
    """sum gap (2^(l+1) + 3/2 + alpha / (alpha - 3)), with 2^l the least power of two above the infimum of Theorem 8.

    >>> round(adap_klucb(Problem.bernoulli([0.75, 0.25], 1000, epsilon=0.25)).value)
    528
    """
    problem.need("bernoulli")
    epsilon, _ = _adap(problem, alpha)

    def curve(horizon: float) -> float:
        total = 0.0
        for arm, gap in zip(problem.worse, problem.gaps, strict=True):
            enough = _enough(problem.means[arm], gap, epsilon, alpha, positive_log(horizon))
            episode = 2.0 ** math.ceil(math.log2(max(enough, 1.0)))
            total += gap * (2.0 * episode + 1.5 + alpha / (alpha - 3.0))
        return total

    return curve


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, Theorem 12",
    LARGE_ALPHA,
    policies=("adap-ucb",),
    trust="central",
    scope="every problem",
    note="its proof uses the faulty step of Theorem 7, but the statement holds: see adap-ucb-minimax",
)
def adap_ucb_minimax_printed(problem: Problem, alpha: float = 3.1) -> Curve:
    """3 alpha / (alpha - 3) sum gap + 8 sqrt(alpha K T log T) + 16 alpha K log T / epsilon.

    >>> round(adap_ucb_minimax_printed(Problem.bernoulli([0.75, 0.25], 10**6, epsilon=0.25)).value)
    79569
    """
    return _minimax(problem, alpha, 8.0)


@theorem(
    Problem,
    "upper",
    f"{AZIZE}, Theorem 12",
    LARGE_ALPHA,
    form="corrected",
    corrects="adap-ucb-minimax-printed",
    policies=("adap-ucb",),
    trust="central",
    scope="every problem",
    note="from the corrected Theorem 7, whose term is at most 8 alpha log T / gap + 16 alpha log T / epsilon",
)
def adap_ucb_minimax(problem: Problem, alpha: float = 3.1) -> Curve:
    """3 alpha / (alpha - 3) sum gap + 4 sqrt(2 alpha K T log T) + 16 alpha K log T / epsilon: below the printed bound.

    The corrected Theorem 7 is bounded with 1 + 2u + sqrt(1 + 4u) <= 2 + 4u. Arms with a gap of at most g lose at most
    g T together, and the best choice of g is sqrt(8 alpha K log T / T).

    >>> round(adap_ucb_minimax(Problem.bernoulli([0.75, 0.25], 10**6, epsilon=0.25)).value)
    57883
    """
    return _minimax(problem, alpha, 4.0 * math.sqrt(2.0))


def kl_decomposition(epsilon: float, pulls: Sequence[float], total_variations: Sequence[float]) -> float:
    """Theorem 10 of Azize & Basu 2022: how well the choices of an epsilon-private policy distinguish two problems.

    The KL divergence between the distributions of the choices is at most 6 epsilon sum E[pulls] TV(arm, its
    counterpart), with expectations under the first problem.

    >>> round(kl_decomposition(0.5, pulls=[900, 100], total_variations=[0.0, 0.2]), 6)
    60.0
    """
    positive("epsilon", epsilon)
    if len(pulls) != len(total_variations):
        raise InputError("total_variations", f"must be one for each arm, got {len(total_variations)}")
    for tv in total_variations:
        if not 0 <= tv <= 1:
            raise InputError("total_variations", f"must lie in [0, 1], got {tv}")
    return 6.0 * epsilon * math.fsum(n * tv for n, tv in zip(pulls, total_variations, strict=True))


def _adap(problem: Problem, alpha: float) -> tuple[float, float]:
    """Epsilon and 3 alpha / (alpha - 3). Raises DoesNotHold if the conditions of the AdaP theorems fail."""
    problem.need_unit_rewards()
    if alpha <= 3:
        raise DoesNotHold(f"alpha must be above 3, and is {alpha:g}")
    return problem.one_epsilon(), 3.0 * alpha / (alpha - 3.0)


def _minimax(problem: Problem, alpha: float, constant: float) -> Curve:
    epsilon, remainder = _adap(problem, alpha)
    rest, arms = remainder * sum(problem.gaps), problem.arms

    def curve(horizon: float) -> float:
        log = positive_log(horizon)
        return rest + constant * math.sqrt(alpha * arms * horizon * log) + 16.0 * alpha * arms * log / epsilon

    return curve


@lru_cache(1 << 14)  # a millisecond each; figures ask again at the same rounds, and arms may have equal means
def _enough(mean: float, gap: float, epsilon: float, alpha: float, log: float) -> float:
    """The infimum of Theorem 8 times log T: the least n for which some beta meets Equations (34) and (35) at 2^l = n.

    For (35) the largest beta that (34) allows is best. It satisfies kl(mean + c gap, best) = alpha log T / n, and gamma
    satisfies kl(mean + gamma gap, mean) = log T / n. So (35) requires (c - gamma) gap epsilon n >= (1 + alpha) log T,
    and its left side increases with n. Gamma depends on l, but the definition is not circular.
    """
    if log <= 0.0:
        return 0.0

    def lack(log_n: float) -> float:
        n = math.exp(log_n)
        room = towards_best(mean, gap, alpha * log / n) - above_mean(mean, gap, log / n)
        return (1.0 + alpha) * log - room * gap * epsilon * n

    low = high = math.log(log) - 10.0
    while lack(high) > 0.0:
        low, high = high, high + 1.0
    if low == high:
        return math.exp(low)
    return math.exp(float(brentq(lack, low, high, xtol=1e-12)))
