"""Bounds for local privacy with one epsilon for all users (Ren, Zhou, Liu & Shroff 2020)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from dpbandits.bounds.bound import CONSISTENT, UNIT, Curve, DoesNotHold, LongRun, theorem
from dpbandits.bounds.divergences import kl_across
from dpbandits.bounds.levels import response_cost
from dpbandits.bounds.problem import Problem
from dpbandits.curators import LocalBernoulli
from dpbandits.environments.distributions import Normal
from dpbandits.mechanisms import attenuation, response_probability
from dpbandits.numerics import positive_log
from dpbandits.policies import lookup
from dpbandits.policies.policy import Mechanism

__all__ = [
    "GAUSSIAN_SLOPE",
    "NORMAL",
    "SUB_GAUSSIAN_SLOPE",
    "bit_rate",
    "gap_bound",
    "ldp_lower",
    "ldp_lower_printed",
    "ldp_lower_randomised_response",
    "ldp_ucb_b",
    "ldp_ucb_b_distribution_free",
    "ldp_ucb_bs_gaussian",
    "ldp_ucb_bs_slope",
    "ldp_ucb_bs_sub_gaussian",
    "ldp_ucb_l",
    "ldp_ucb_l_distribution_free",
    "ldp_ucb_ls_gaussian",
    "ldp_ucb_ls_slope",
    "ldp_ucb_ls_sub_gaussian",
    "need_normal",
    "sigmoid_bit_rate",
    "sigmoid_slope",
]

REN = "Ren, Zhou, Liu & Shroff 2020"
NORMAL = (
    "rewards with the same sub-Gaussian noise (variance proxy at most 1) on every arm, means in [0, 1]; every horizon"
)
#: The constant terms of Theorems 4 and 6, for each unit of gap.
CONSTANT_L, CONSTANT_B = 1.0 + 2.0 * math.pi**2 / 3.0, 1.0 + math.pi**2 / 3.0

LEAST_GAP_OF_BITS = 1e-12  # a smaller difference of two integrals is mostly rounding

#: c_s of Lemma 7: lower bounds on the least slope of E[sigmoid(m + Z)] in m over [0, 1].
#: The first is for any sub-Gaussian Z, the second for normal Z.
SUB_GAUSSIAN_SLOPE, GAUSSIAN_SLOPE = 0.0765 / math.e, 0.2066 / math.e


def bit_policies() -> tuple[str, ...]:
    """The consistent policies that see only randomised responses to rewards in [0, 1], one bit for each reward.

    A policy that stops and may be wrong for ever is not consistent.
    """
    curators = {name: lookup.sample(name).curator for name in lookup.names() if not lookup.traits(name).stops}
    return tuple(name for name, one in curators.items() if isinstance(one, LocalBernoulli) and not one.sigmoid)


@theorem(
    Problem,
    "lower",
    f"{REN}, Theorem 1",
    f"Bernoulli rewards; {CONSISTENT}",
    trust="local",
    note="tends to 0 as epsilon grows, although learning still has a cost without privacy: see ldp-lower",
)
def ldp_lower_printed(problem: Problem) -> Curve:
    """sum 1/gap / (e^epsilon - e^-epsilon)^2 * log T.

    >>> round(ldp_lower_printed(Problem.bernoulli([0.9, 0.6], 1000, epsilon=0.5)).value, 4)
    21.1993
    """
    problem.need("bernoulli")
    problem.need_room()
    epsilon = problem.one_epsilon()
    rate = sum(1.0 / gap for gap in problem.gaps) / (2.0 * math.sinh(min(epsilon, 300.0))) ** 2
    return LongRun(rate)


@theorem(
    Problem,
    "lower",
    f"{REN}, Theorem 1, with Lai & Robbins 1985",
    f"Bernoulli rewards; {CONSISTENT}",
    form="corrected",
    corrects="ldp-lower-printed",
    trust="local",
    note="for each arm, the larger of Theorem 1 and the bound without privacy, which holds for private policies too",
)
def ldp_lower(problem: Problem) -> Curve:
    """sum max(1/gap / (2 sinh epsilon)^2, gap / kl(mean, best)) * log T: both bound the plays of each arm.

    >>> round(ldp_lower(Problem.bernoulli([0.9, 0.6], 1000, epsilon=0.5)).value, 4)
    21.1993
    >>> round(ldp_lower(Problem.bernoulli([0.9, 0.6], 1000, epsilon=5.0)).value, 4)
    6.6583
    """
    problem.need("bernoulli")
    problem.need_room()
    information = (2.0 * math.sinh(min(problem.one_epsilon(), 300.0))) ** 2
    rate = sum(
        max(1.0 / (gap * information), gap / problem.kl_gap(arm))
        for arm, gap in zip(problem.worse, problem.gaps, strict=True)
    )
    return LongRun(rate)


@theorem(
    Problem,
    "lower",
    "Lai & Robbins 1985 on randomised responses (Gajane, Urvoy & Kaufmann 2018)",
    f"rewards in [0, 1] that reach the policy through Convert-to-Bernoulli; {CONSISTENT}",
    policies=bit_policies,
    trust="local",
    note="tight: an index that is optimal for Bernoulli rewards reaches it on the responses",
)
def ldp_lower_randomised_response(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T.

    A response mean is 1/2 + (2 mean - 1) tanh(epsilon/2) / 2.

    >>> round(ldp_lower_randomised_response(Problem.bernoulli([0.9, 0.6], 1000, epsilon=0.5)).rate, 2)
    27.15
    """
    problem.need_room()
    return LongRun(bit_rate(problem))


def bit_rate(problem: Problem) -> float:
    """sum gap / kl(response mean, best response mean): what arms must cost in the long run, for each unit of log T.

    >>> round(bit_rate(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=0.5)), 2)
    27.15
    """
    problem.need_unit_rewards()
    epsilon = problem.one_epsilon()
    slope = attenuation(epsilon)
    return sum(
        gap / kl_across(response_probability(problem.means[arm], epsilon), slope * gap)
        for arm, gap in zip(problem.worse, problem.gaps, strict=True)
    )


def sigmoid_bit_rate(problem: Problem) -> float:
    """``bit_rate`` for normal rewards that pass through the logistic function first; gaps are those of the rewards.

    >>> round(sigmoid_bit_rate(Problem.gaussian([0.9, 0.6], 10**6, epsilon=0.5)), 1)
    767.2
    """
    problem.need("normal")
    epsilon = problem.one_epsilon()
    through = [Normal(mean, problem.sd).sigmoid_mean() for mean in problem.means]
    rate, slope, best = 0.0, attenuation(epsilon), max(through)
    for arm, gap in zip(problem.worse, problem.gaps, strict=True):
        off = slope * (best - through[arm])
        if off < LEAST_GAP_OF_BITS:
            raise DoesNotHold(f"the means of two arms' bits must differ by {LEAST_GAP_OF_BITS:g} to be told apart here")
        rate += gap / kl_across(response_probability(through[arm], epsilon), off)
    return rate


@theorem(Problem, "upper", f"{REN}, Theorem 4", UNIT, policies=("ldp-ucb-l",), trust="local")
def ldp_ucb_l(problem: Problem) -> Curve:
    """sum 8 (1 + 4/epsilon)^2 / gap * log T + (1 + 2 pi^2/3) gap.

    >>> round(ldp_ucb_l(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 2)
    1660.14
    """
    problem.need_unit_rewards()
    return gap_bound(problem, response_cost(problem.one_epsilon(), "laplace"), CONSTANT_L)


@theorem(Problem, "upper", f"{REN}, Theorem 6", UNIT, policies=("ldp-ucb-b",), trust="local")
def ldp_ucb_b(problem: Problem) -> Curve:
    """sum 8 coth(epsilon/2)^2 / gap * log T + (1 + pi^2/3) gap.

    >>> round(ldp_ucb_b(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 2)
    318.87
    """
    problem.need_unit_rewards()
    return gap_bound(problem, response_cost(problem.one_epsilon(), "bernoulli"), CONSTANT_B)


FREE_NOTE = (
    "printed as O(sqrt(K T log T) / epsilon), which is wrong for epsilon > 1; the constants follow from the "
    "proof if the factor of the gap-dependent bound is kept"
)


@theorem(
    Problem,
    "upper",
    f"{REN}, Theorem 4, distribution-free",
    UNIT,
    form="corrected",
    policies=("ldp-ucb-l",),
    trust="local",
    scope="every problem",
    note=FREE_NOTE,
)
def ldp_ucb_l_distribution_free(problem: Problem) -> Curve:
    """2 sqrt(8 (1 + 4/epsilon)^2 K T log T) + (1 + 2 pi^2/3) K.

    >>> round(ldp_ucb_l_distribution_free(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=2.0)).value)
    89221
    """
    problem.need_unit_rewards()
    return free_bound(problem, response_cost(problem.one_epsilon(), "laplace"), CONSTANT_L)


@theorem(
    Problem,
    "upper",
    f"{REN}, Theorem 6, distribution-free",
    UNIT,
    form="corrected",
    policies=("ldp-ucb-b",),
    trust="local",
    scope="every problem",
    note=FREE_NOTE,
)
def ldp_ucb_b_distribution_free(problem: Problem) -> Curve:
    """2 sqrt(8 coth(epsilon/2)^2 K T log T) + (1 + pi^2/3) K.

    >>> round(ldp_ucb_b_distribution_free(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=2.0)).value)
    39052
    """
    problem.need_unit_rewards()
    return free_bound(problem, response_cost(problem.one_epsilon(), "bernoulli"), CONSTANT_B)


@theorem(Problem, "upper", f"{REN}, Corollary 10", NORMAL, policies=("ldp-ucb-ls",), trust="local")
def ldp_ucb_ls_sub_gaussian(problem: Problem) -> Curve:
    """Theorem 4 divided by c_s^2, with c_s = 0.0765/e.

    >>> ldp_ucb_ls_sub_gaussian(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).holds
    'does not apply: rewards must be normal, and are bernoulli'
    """
    return through_sigmoid(problem, "laplace", CONSTANT_L, SUB_GAUSSIAN_SLOPE)


@theorem(
    Problem,
    "upper",
    f"{REN}, Corollary 10 with Lemma 7 for normal noise",
    NORMAL,
    policies=("ldp-ucb-ls",),
    trust="local",
)
def ldp_ucb_ls_gaussian(problem: Problem) -> Curve:
    """Theorem 4 divided by c_s^2, with c_s = 0.2066/e.

    >>> problem = Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)
    >>> round(ldp_ucb_ls_sub_gaussian(problem).value / ldp_ucb_ls_gaussian(problem).value, 3)
    7.294
    """
    return through_sigmoid(problem, "laplace", CONSTANT_L, GAUSSIAN_SLOPE)


SLOPE_NOTE = (
    "c_s is computed, not bounded: the least slope of E[sigmoid(m + Z)] over m in [0, 1], for normal Z of this sd"
)


@theorem(
    Problem,
    "upper",
    f"{REN}, Corollary 10 with the exact slope",
    NORMAL,
    form="corrected",
    policies=("ldp-ucb-ls",),
    trust="local",
    note=SLOPE_NOTE,
)
def ldp_ucb_ls_slope(problem: Problem) -> Curve:
    """Theorem 4 divided by c_s^2, with c_s the exact slope: 0.1779 where the standard deviation is 1.

    >>> problem = Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)
    >>> round(ldp_ucb_ls_gaussian(problem).value / ldp_ucb_ls_slope(problem).value, 2)
    5.48
    """
    return through_sigmoid(problem, "laplace", CONSTANT_L, None)


@theorem(
    Problem,
    "upper",
    f"{REN}, Corollary 11",
    NORMAL,
    policies=("ldp-ucb-bs",),
    trust="local",
    note="the corollary calls the policy LDP-UCB-B",
)
def ldp_ucb_bs_sub_gaussian(problem: Problem) -> Curve:
    """Theorem 6 divided by c_s^2, with c_s = 0.0765/e.

    >>> round(ldp_ucb_bs_sub_gaussian(Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)).value)
    402607
    """
    return through_sigmoid(problem, "bernoulli", CONSTANT_B, SUB_GAUSSIAN_SLOPE)


@theorem(
    Problem,
    "upper",
    f"{REN}, Corollary 11 with Lemma 7 for normal noise",
    NORMAL,
    policies=("ldp-ucb-bs",),
    trust="local",
)
def ldp_ucb_bs_gaussian(problem: Problem) -> Curve:
    """Theorem 6 divided by c_s^2, with c_s = 0.2066/e.

    >>> round(ldp_ucb_bs_gaussian(Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)).value)
    55201
    """
    return through_sigmoid(problem, "bernoulli", CONSTANT_B, GAUSSIAN_SLOPE)


@theorem(
    Problem,
    "upper",
    f"{REN}, Corollary 11 with the exact slope",
    NORMAL,
    form="corrected",
    policies=("ldp-ucb-bs",),
    trust="local",
    note=SLOPE_NOTE,
)
def ldp_ucb_bs_slope(problem: Problem) -> Curve:
    """Theorem 6 divided by c_s^2, with c_s the exact slope: 0.1779 where the standard deviation is 1.

    >>> round(ldp_ucb_bs_slope(Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)).value)
    10071
    """
    return through_sigmoid(problem, "bernoulli", CONSTANT_B, None)


@cache
def sigmoid_slope(mean: float, sd: float) -> float:
    """The slope of E[sigmoid(m + sd Z)] in m at ``mean``, for standard normal Z.

    >>> round(sigmoid_slope(1.0, 1.0), 4), round(sigmoid_slope(0.0, 1.0), 4)
    (0.1779, 0.2066)
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    x = mean + sd * nodes
    return float(np.dot(weights, 0.25 / np.cosh(0.5 * x) ** 2)) / math.sqrt(2.0 * math.pi)


def gap_bound(problem: Problem, cost: float, constant: float) -> Curve:
    """sum 8 cost / gap * log T + constant * gap."""
    rate = sum(8.0 * cost / gap for gap in problem.gaps)
    rest = constant * sum(problem.gaps)
    return lambda horizon: rate * positive_log(horizon) + rest


def free_bound(problem: Problem, cost: float, constant: float) -> Curve:
    """The same bound for the worst gaps.

    Arms with a gap of at most g lose at most g T together, and every other arm loses 8 cost / g * log T. The bound uses
    the best g.
    """

    def curve(horizon: float) -> float:
        if horizon < problem.arms:
            raise DoesNotHold(f"the horizon must be at least the number of arms, and is {horizon:g}")
        return 2.0 * math.sqrt(8.0 * cost * problem.arms * horizon * positive_log(horizon)) + constant * problem.arms

    return curve


def need_normal(problem: Problem) -> None:
    """Raise DoesNotHold if the conditions of Lemma 7 fail."""
    problem.need("normal")
    if problem.sd > 1:
        raise DoesNotHold(f"the standard deviation must be at most 1, and is {problem.sd:g}")
    if min(problem.means) < 0 or problem.best > 1:
        raise DoesNotHold(f"means must lie in [0, 1], and reach from {min(problem.means):g} to {problem.best:g}")


def through_sigmoid(problem: Problem, mechanism: Mechanism, constant: float, slope: float | None) -> Curve:
    """The bound for rewards in [0, 1] divided by slope^2.

    If no slope is given, it is the exact least slope, which is at mean 1.
    """
    need_normal(problem)
    bounded = gap_bound(problem, response_cost(problem.one_epsilon(), mechanism), constant)
    c = sigmoid_slope(1.0, problem.sd) if slope is None else slope
    return lambda horizon: bounded(horizon) / (c * c)
