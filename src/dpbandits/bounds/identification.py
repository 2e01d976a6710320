"""How many rounds any private policy needs on average to know the best arm: lower bounds on expected stopping times."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import brentq, minimize_scalar

from dpbandits.bounds.bound import DoesNotHold
from dpbandits.bounds.problem import Problem
from dpbandits.checks import fraction
from dpbandits.mechanisms import response_probability
from dpbandits.numerics import kl

__all__ = ["rounds_to_know", "rounds_to_know_from_bits"]

MOST_SHARE = 1e12  # of an arm, as a multiple of the best arm's


def rounds_to_know(problem: Problem, beta: float) -> float:
    """The least average stopping time of any epsilon-private policy that names a wrong arm with probability at most
    ``beta``, on every Bernoulli problem (Azize, Jourdan, Al Marjani & Basu 2023, for a trusted server).

    It is max(T_KL, T_TV / (6 epsilon)) kl(beta, 1 - beta). T_KL is the characteristic time without privacy (Garivier &
    Kaufmann 2016, Theorem 1), and T_TV = 1/(smallest gap) + sum 1/gap is the same with total variation. Both follow
    from kl(beta, 1 - beta) <= min(sum E[N] kl, 6 epsilon sum E[N] TV) for every problem with another best arm: Theorem
    10 of Azize & Basu 2022 gives the second.

    >>> problem = Problem.bernoulli([0.75, 0.625, 0.5], 1000, epsilon=1.0)
    >>> round(rounds_to_know(problem, 0.05), 1)
    311.4
    >>> private = Problem.bernoulli([0.75, 0.625, 0.5], 1000, epsilon=0.01)
    >>> round(rounds_to_know(private, 0.05), 1)
    883.3
    """
    means, gaps = _checked(problem)
    by_variation = (1.0 / min(gaps) + math.fsum(1.0 / gap for gap in gaps)) / (6.0 * problem.one_epsilon())
    return max(_characteristic_time(means), by_variation) * _needed(beta)


def rounds_to_know_from_bits(problem: Problem, beta: float) -> float:
    """The same for a policy that sees one private bit for each reward: randomised response, as LDP-UCB-B and CTB-TT.

    The bits are Bernoulli, so it is T_KL kl(beta, 1 - beta) of their means. Other local mechanisms are not covered.

    >>> round(rounds_to_know_from_bits(Problem.bernoulli([0.75, 0.625, 0.5], 1000, epsilon=1.0), 0.05), 1)
    1650.4
    """
    means, _ = _checked(problem)
    epsilon = problem.one_epsilon()
    return _characteristic_time([response_probability(mean, epsilon) for mean in means]) * _needed(beta)


def _checked(problem: Problem) -> tuple[list[float], list[float]]:
    problem.need("bernoulli")
    if len(problem.gaps) != problem.arms - 1:
        raise DoesNotHold("one arm must be the best, and several are: no test can end")
    return list(problem.means), problem.gaps


def _needed(beta: float) -> float:
    beta = fraction("beta", beta)
    return kl(beta, 1.0 - beta) if beta < 0.5 else 0.0


def _characteristic_time(means: Sequence[float]) -> float:
    """1 over the most information in a round, over all shares of the arms: Garivier & Kaufmann 2016, Theorem 5.

    With the share of the best arm as the unit, each other arm gets the share at which its information is y, and the
    best y is searched for.
    """
    best = max(means)
    others = [mean for mean in means if mean < best]

    def information(mean: float, x: float) -> float:
        m = (best + x * mean) / (1.0 + x)
        return kl(best, m) + x * kl(mean, m) if x > 0.0 else 0.0

    def share(mean: float, y: float) -> float:
        high = 1.0
        while information(mean, high) < y:
            high *= 2.0
            if high > MOST_SHARE:
                return MOST_SHARE
        return float(brentq(lambda x: information(mean, x) - y, 0.0, high, xtol=1e-14, rtol=1e-12))

    def rounds(log_y: float) -> float:
        y = math.exp(log_y)
        return (1.0 + math.fsum(share(mean, y) for mean in others)) / y

    most = math.log(min(1e3, *(kl(best, mean) for mean in others)))  # no share gives more information
    found = minimize_scalar(rounds, bounds=(most - 20.0, most), method="bounded", options={"xatol": 1e-9})
    return float(found.fun)
