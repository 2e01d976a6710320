"""Users with several rewards: the cost that each reward may have, so that the promise holds for the whole user.

This is the one place where epsilon for a reward is derived from epsilon for a user and the cap on the user's rewards.
Tossou & Dimitrakakis 2016, Section 5: divide epsilon by the cap. docs/concepts/users.md has the proof, adaptive choices
of arms included.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

from dpbandits.checks import at_least, fraction, positive
from dpbandits.errors import InputError
from dpbandits.privacy.guarantee import Guarantee

__all__ = ["ONE_USER", "delta_of_reward", "for_users", "group", "of_response", "of_reward"]

ONE_USER = "one user"
DIGITS = 15  # of a promised epsilon, rounded up: what the user wrote, where it has no more
DELTA_DIGITS = 12
COMPOSED_DIGITS = 6
SAFE = 1.0 - 1e-12  # for what is computed in floating point


def of_reward(epsilon: float, rewards: int) -> float:
    """The epsilon of each of a user's ``rewards``: the largest float whose multiple is not above the user's epsilon.

    >>> of_reward(1.0, 4), of_reward(0.3, 3) * 3 <= 0.3
    (0.25, True)
    """
    epsilon, rewards = positive("epsilon", epsilon), at_least("rewards_per_user", rewards, 1)
    each = epsilon / rewards
    while Fraction(each) * rewards > Fraction(epsilon):
        each = math.nextafter(each, 0.0)
    return positive("epsilon", each)


def delta_of_reward(epsilon: float, delta: float, rewards: int) -> float:
    """The delta of each reward at ``of_reward(epsilon, rewards)``, so that ``group`` gives at most the user's delta.

    >>> each = delta_of_reward(1.0, 1e-6, 10)
    >>> 0.99e-6 < group(of_reward(1.0, 10), each, 10)[1] <= 1e-6
    True
    """
    fraction("delta", delta, zero=True)
    if delta == 0.0 or at_least("rewards_per_user", rewards, 1) == 1:
        return delta
    each = of_reward(epsilon, rewards)
    return delta * math.exp(_log_expm1(each) - _log_expm1(epsilon)) * SAFE


def of_response(epsilon: float, delta: float, rewards: int) -> float:
    """The same in the local model, for a promise with a delta: the epsilon of each response, by optimal composition.

    Each response is made on its own, so that the responses of a user compose (Kairouz, Oh & Viswanath 2015). It is
    rounded down to eight digits. It is never below ``of_reward``: 2.4 times that for 100 rewards at (1, 1e-6).

    >>> of_response(1.0, 1e-6, 100), round(of_reward(1.0, 100), 6)
    (0.02401108, 0.01)
    """
    fraction("delta", delta)
    return _of_response(positive("epsilon", epsilon), delta, at_least("rewards_per_user", rewards, 1))


@cache  # every audit and every simulation starts fresh policies
def _of_response(epsilon: float, delta: float, rewards: int) -> float:
    from dpbandits.privacy.composition import optimal  # SciPy, which few policies need

    least = of_reward(epsilon, rewards)
    low, high = least, epsilon
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if optimal(middle, rewards, delta) <= epsilon else (low, middle)
    unit = Fraction(10) ** (7 - math.floor(math.log10(low)))
    return max(least, float(Fraction(low * SAFE) * unit // 1 / unit))


def group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Group privacy: the guarantee for a user with ``size`` rewards, from (epsilon, delta) for one reward.

    With m = ``size`` it is (m epsilon, delta (e^(m epsilon) - 1) / (e^epsilon - 1)) (Vadhan 2017, Lemma 2.2). It holds
    for any mechanism. If each of the user's rewards goes through its own mechanism, as in the local model, composition
    applies too and can give a smaller cost.

    >>> group(0.5, 0.0, 4)
    (2.0, 0.0)
    """
    epsilon, size = positive("epsilon", epsilon), at_least("size", size, 1)
    fraction("delta", delta, zero=True)
    if delta == 0.0:
        return size * epsilon, 0.0
    grown = math.log(delta) + _log_expm1(size * epsilon) - _log_expm1(epsilon)
    return size * epsilon, math.exp(min(grown, 0.0))


def _log_expm1(x: float) -> float:
    """log(e^x - 1), also where e^x is no float.

    >>> _log_expm1(1000.0), round(_log_expm1(1.0), 6)
    (1000.0, 0.541325)
    """
    return x + math.log(-math.expm1(-x))


def for_users(promise: Guarantee, rewards: int, delta: float = 0.0) -> Guarantee:
    """The promise for one user with at most ``rewards`` rewards, from the curator's promise for one reward.

    In the local model ``delta`` may be given: then the promise is what the responses compose to at this delta.

    >>> promised = for_users(Guarantee.central(of_reward(1.0, 10)), 10)
    >>> promised.epsilon, promised.unit
    (1.0, 'one user')
    """
    times = "one reward" if rewards == 1 else f"{rewards} rewards"
    each = "their level divided by that number" if promise.epsilon is None else f"epsilon {promise.epsilon:g}"
    capped = replace(promise, unit=ONE_USER).under(
        f"no user gives more than {times}, each private at {each}, and when users come does not depend on their rewards"
    )
    if promise.epsilon is None:
        return capped
    if delta:
        from dpbandits.privacy.composition import optimal

        if promise.trust != "local" or promise.delta:
            rule = "must be given only where privacy is local and pure, so that responses compose"
            raise InputError("user_delta", f"{rule}; here it is {promise.in_short}, got {delta:g}")
        composed = Fraction(optimal(promise.epsilon, rewards, delta))
        return replace(capped, epsilon=_up(composed, COMPOSED_DIGITS), delta=delta)
    total = Fraction(promise.epsilon) * rewards
    lost = _up(Fraction(group(promise.epsilon, promise.delta, rewards)[1]), DELTA_DIGITS) if promise.delta else 0.0
    return replace(capped, epsilon=_up(total, DIGITS), delta=lost)


def _up(value: Fraction, digits: int) -> float:
    """``value`` rounded up to this many decimal digits.

    >>> _up(Fraction(1, 3), 3), _up(Fraction(math.nextafter(0.3, 0.0)), 15)
    (0.334, 0.3)
    """
    unit = Fraction(10) ** (digits - 1 - math.floor(math.log10(value)))
    nearest = float(round(value * unit) / unit)
    return nearest if Fraction(nearest) >= value else float(-(-value * unit // 1) / unit)
