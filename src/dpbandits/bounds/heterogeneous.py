"""Bounds for local privacy where each user has their own level (the heterogeneous-levels paper, HeLDP).

The paper's proofs are in a supplement that is not available. Only the two corollaries for equal levels are checked,
because Ren et al. 2020 prove them with smaller constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from dpbandits.bounds.bound import Curve, DoesNotHold, theorem
from dpbandits.bounds.levels import best_epsilon_min, response_cost
from dpbandits.bounds.local import GAUSSIAN_SLOPE, NORMAL, gap_bound, need_normal
from dpbandits.bounds.problem import Problem
from dpbandits.mechanisms import attenuation, debias_variance
from dpbandits.numerics import positive_log
from dpbandits.policies.policy import Mechanism
from dpbandits.types import Floats

__all__ = [
    "heldp_ucb_b",
    "heldp_ucb_b_distribution_free",
    "heldp_ucb_b_homogeneous",
    "heldp_ucb_b_printed",
    "heldp_ucb_bs",
    "heldp_ucb_l",
    "heldp_ucb_l_distribution_free",
    "heldp_ucb_l_homogeneous",
    "heldp_ucb_ls",
]

HELDP = "heterogeneous-levels paper (HeLDP)"
HOLDS = "rewards in [0, 1]; users' levels independent of rewards, drawn from one population; every horizon"
ONE_LEVEL = "rewards in [0, 1]; epsilon_min is everyone's level; every horizon"


class _Accepted(NamedTuple):
    """The users whose responses are used: p0, alpha0 or beta0, Q_L or Q_B, and epsilon_min in the paper's notation."""

    share: float
    mean: float
    spread: float
    epsilon_min: float


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Theorem 7",
    HOLDS,
    policies=("heldp-ucb-l",),
    trust="local",
    note="the infimum over kappa is computed numerically; epsilon_min follows the V_L rule unless given",
    checked=False,
)
def heldp_ucb_l(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """inf over kappa of sum max{8/(p0 gap) (1 + 4 sqrt(alpha0 + kappa Q))^2,
    2 gap/(p0 alpha0^2) (4 alpha0 e^-2 + e^-4)} log T + gap/(2 p0 kappa^2) log(p0 T e^(2 kappa^2)) + 2 gap/p0
    + 2 pi^2 gap/3, with e = epsilon_min.

    >>> from dpbandits.environments import Levels
    >>> problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([0, 0.2, 1, 2, 100]))
    >>> round(heldp_ucb_l(problem, epsilon_min=1.0).value)
    9479
    """
    problem.need_unit_rewards()
    return _laplace_curve(problem, _accepted(problem, epsilon_min, "laplace"))


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Theorem 10",
    HOLDS,
    policies=("heldp-ucb-b",),
    trust="local",
    note="printed with p0 = P(level > epsilon_min), though the policy accepts level >= epsilon_min, and with "
    "e^(2 p0 kappa^2) where Theorem 7 has e^(2 kappa^2)",
    checked=False,
)
def heldp_ucb_b_printed(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """inf over kappa of sum 8/(p0 gap) (beta0 + kappa Q) log T + gap/(2 p0 kappa^2) log(p0 T e^(2 p0 kappa^2)) + gap/p0
    + pi^2 gap/3, where p0 counts only levels strictly above epsilon_min.

    >>> from dpbandits.environments import Levels
    >>> heldp_ucb_b_printed(Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([1, 2])), epsilon_min=2).holds
    'does not apply: the share of users above epsilon_min = 2 must be positive, and is 0'
    """
    problem.need_unit_rewards()
    users = _accepted(problem, epsilon_min, "bernoulli", strictly=True)
    return _bernoulli_curve(problem, users, users.share)


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Theorem 10",
    HOLDS,
    form="corrected",
    corrects="heldp-ucb-b-printed",
    policies=("heldp-ucb-b",),
    trust="local",
    note="p0 counts users at epsilon_min too, and e^(2 kappa^2) is taken from Theorem 7, the larger of the two factors",
    checked=False,
)
def heldp_ucb_b(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """Theorem 10 with p0 = P(level >= epsilon_min) and e^(2 kappa^2); the infimum is computed numerically.

    >>> from dpbandits.environments import Levels
    >>> problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([0, 0.2, 1, 2, 100]))
    >>> round(heldp_ucb_b(problem, epsilon_min=1.0).value)
    2004
    """
    problem.need_unit_rewards()
    return _bernoulli_curve(problem, _accepted(problem, epsilon_min, "bernoulli"), 1.0)


@theorem(Problem, "upper", f"{HELDP}, Corollary 8", ONE_LEVEL, policies=("heldp-ucb-l",), trust="local")
def heldp_ucb_l_homogeneous(problem: Problem) -> Curve:
    """sum 8 (1 + 4/epsilon)^2 / gap * log T + (3 + 2 pi^2/3) gap.

    >>> round(heldp_ucb_l_homogeneous(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 2)
    1660.74
    """
    problem.need_unit_rewards()
    return gap_bound(problem, response_cost(problem.one_epsilon(), "laplace"), 3.0 + 2.0 * math.pi**2 / 3.0)


@theorem(Problem, "upper", f"{HELDP}, Corollary 11", ONE_LEVEL, policies=("heldp-ucb-b",), trust="local")
def heldp_ucb_b_homogeneous(problem: Problem) -> Curve:
    """sum 8 coth(epsilon/2)^2 / gap * log T + (2 + pi^2/3) gap.

    >>> round(heldp_ucb_b_homogeneous(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 2)
    319.17
    """
    problem.need_unit_rewards()
    return gap_bound(problem, response_cost(problem.one_epsilon(), "bernoulli"), 2.0 + math.pi**2 / 3.0)


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Corollary 13",
    f"{NORMAL}; users' levels independent of rewards",
    policies=("heldp-ucb-ls",),
    trust="local",
    note="c_s is 0.2066/e, from Ren et al. 2020, Lemma 7, because the paper gives no value",
    checked=False,
)
def heldp_ucb_ls(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """Theorem 7 divided by c_s^2.

    >>> problem = Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)
    >>> round(heldp_ucb_ls(problem).value / heldp_ucb_l(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 1)
    173.1
    """
    need_normal(problem)
    bounded = _laplace_curve(problem, _accepted(problem, epsilon_min, "laplace"))
    return lambda horizon: bounded(horizon) / GAUSSIAN_SLOPE**2


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Corollary 13",
    f"{NORMAL}; users' levels independent of rewards",
    policies=("heldp-ucb-bs",),
    trust="local",
    note="c_s is 0.2066/e, from Ren et al. 2020, Lemma 7, because the paper gives no value; uses the corrected "
    "Theorem 10",
    form="corrected",
    checked=False,
)
def heldp_ucb_bs(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """The corrected Theorem 10 divided by c_s^2.

    >>> problem = Problem.gaussian([0.9, 0.6], 1000, epsilon=2.0)
    >>> round(heldp_ucb_bs(problem).value / heldp_ucb_b(Problem.bernoulli([0.9, 0.6], 1000, epsilon=2.0)).value, 1)
    173.1
    """
    need_normal(problem)
    bounded = _bernoulli_curve(problem, _accepted(problem, epsilon_min, "bernoulli"), 1.0)
    return lambda horizon: bounded(horizon) / GAUSSIAN_SLOPE**2


FREE_NOTE = (
    "the paper gives only the order; the constants follow from the gap-dependent bound, where arms with a gap of at "
    "most g lose at most g T"
)


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Theorem 7, distribution-free",
    HOLDS,
    form="corrected",
    policies=("heldp-ucb-l",),
    trust="local",
    scope="every problem",
    note=FREE_NOTE,
    checked=False,
)
def heldp_ucb_l_distribution_free(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """inf over kappa of 2 sqrt(8/p0 (1 + 4 sqrt(alpha0 + kappa Q))^2 K T log T) + K times the other terms at gap 1.

    >>> from dpbandits.environments import Levels
    >>> problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([1, 2]))
    >>> round(heldp_ucb_l_distribution_free(problem, epsilon_min=1.0).value)
    130850
    """
    problem.need_unit_rewards()
    users = _accepted(problem, epsilon_min, "laplace")
    arms = problem.arms

    def curve(horizon: float) -> float:
        log = positive_log(horizon)
        forced = 2.0 / (users.share * users.mean**2) * _warm_up(users) * log

        def total(kappa: Floats) -> Floats:
            played = 2.0 * np.sqrt(_laplace(users, kappa) * arms * horizon * log)
            return np.asarray(played + arms * _drift(users, kappa, horizon, 1.0))

        return _least(total, users) + arms * (forced + 2.0 / users.share + 2.0 * math.pi**2 / 3.0)

    return curve


@theorem(
    Problem,
    "upper",
    f"{HELDP}, Theorem 10, distribution-free",
    HOLDS,
    form="corrected",
    policies=("heldp-ucb-b",),
    trust="local",
    scope="every problem",
    note=FREE_NOTE,
    checked=False,
)
def heldp_ucb_b_distribution_free(problem: Problem, epsilon_min: float | None = None) -> Curve:
    """inf over kappa of 2 sqrt(8/p0 (beta0 + kappa Q) K T log T) + K times the other terms at gap 1.

    >>> from dpbandits.environments import Levels
    >>> problem = Problem.bernoulli([0.9, 0.6], 10**6, levels=Levels.of([1, 2]))
    >>> round(heldp_ucb_b_distribution_free(problem, epsilon_min=1.0).value)
    57005
    """
    problem.need_unit_rewards()
    users = _accepted(problem, epsilon_min, "bernoulli")
    arms = problem.arms

    def curve(horizon: float) -> float:
        def total(kappa: Floats) -> Floats:
            cost = 8.0 / users.share * (users.mean + kappa * users.spread)
            played = 2.0 * np.sqrt(cost * arms * horizon * positive_log(horizon))
            return np.asarray(played + arms * _drift(users, kappa, horizon, 1.0))

        return _least(total, users) + arms * (1.0 / users.share + math.pi**2 / 3.0)

    return curve


def _laplace_curve(problem: Problem, users: _Accepted) -> Curve:
    """Theorem 7."""
    gaps = np.array(problem.gaps)

    def curve(horizon: float) -> float:
        log = positive_log(horizon)
        forced = 2.0 * gaps / (users.share * users.mean**2) * _warm_up(users) * log

        def total(kappa: Floats) -> Floats:
            played = _laplace(users, kappa)[:, None] / gaps * log
            drift = _drift(users, kappa, horizon, 1.0) * np.sum(gaps)
            return np.asarray(np.sum(np.maximum(played, forced), axis=1) + drift)

        rest = (2.0 / users.share + 2.0 * math.pi**2 / 3.0) * float(np.sum(gaps))
        return _least(total, users) + rest

    return curve


def _bernoulli_curve(problem: Problem, users: _Accepted, power: float) -> Curve:
    """Theorem 10 with e^(2 power kappa^2)."""
    inverse, total_gap = sum(1.0 / gap for gap in problem.gaps), sum(problem.gaps)

    def curve(horizon: float) -> float:
        def total(kappa: Floats) -> Floats:
            played = 8.0 / users.share * (users.mean + kappa * users.spread) * inverse * positive_log(horizon)
            return np.asarray(played + _drift(users, kappa, horizon, power) * total_gap)

        return _least(total, users) + (1.0 / users.share + math.pi**2 / 3.0) * total_gap

    return curve


def _accepted(
    problem: Problem, epsilon_min: float | None, mechanism: Mechanism, *, strictly: bool = False
) -> _Accepted:
    levels = problem.population()
    if levels.largest <= 0.0:
        raise DoesNotHold("some user must send a response, and every level is 0")
    least = best_epsilon_min(levels, mechanism) if epsilon_min is None else epsilon_min
    if not least > 0:
        raise DoesNotHold(f"epsilon_min must be positive, and is {least:g}")
    share = levels.accepted(least, strictly=strictly)
    if share <= 0.0:
        relation = "above" if strictly else "at or above"
        raise DoesNotHold(f"the share of users {relation} epsilon_min = {least:g} must be positive, and is 0")

    def cost(epsilon: float) -> float:
        return epsilon**-2 if mechanism == "laplace" else debias_variance(attenuation(epsilon))

    return _Accepted(share, levels.expected(cost, least), cost(least) - cost(levels.largest), least)


def _laplace(users: _Accepted, kappa: Floats) -> Floats:
    return np.asarray(8.0 / users.share * (1.0 + 4.0 * np.sqrt(users.mean + kappa * users.spread)) ** 2)


def _warm_up(users: _Accepted) -> float:
    return 4.0 * users.mean * users.epsilon_min**-2 + users.epsilon_min**-4


def _drift(users: _Accepted, kappa: Floats, horizon: float, power: float) -> Floats:
    """log(p0 T e^(2 power kappa^2)) / (2 p0 kappa^2)."""
    if users.share * horizon < 1.0:
        raise DoesNotHold(f"at least one response must be expected, and {users.share * horizon:g} are")
    return np.asarray(math.log(users.share * horizon) / (2.0 * users.share * kappa**2) + power / users.share)


def _least(total: Callable[[Floats], Floats], users: _Accepted) -> float:
    """The infimum over kappa > 0, by a grid search that is then refined.

    If all accepted levels are equal, the infimum is the limit as kappa grows.
    """
    if users.spread <= 0.0:
        return float(total(np.array([1e150]))[0])
    grid = np.linspace(-10.0, 6.0, 641)
    centre = float(grid[int(np.argmin(total(10.0**grid)))])
    found = minimize_scalar(
        lambda power: float(total(np.array([10.0**power]))[0]),
        bounds=(centre - 0.05, centre + 0.05),
        method="bounded",
        options={"xatol": 1e-7},
    )
    return float(min(found.fun, total(np.array([10.0**centre]))[0]))
