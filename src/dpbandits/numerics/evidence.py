"""Evidence: about -log of the probability of what was released, if an arm were not better than another."""

from __future__ import annotations

import math

from dpbandits.numerics.newton import newton_step
from dpbandits.numerics.rewards import unit

__all__ = ["chernoff", "corrected", "corrected_room", "corrected_slope", "evidence_between", "uncorrected"]


def chernoff(n: float, mean: float, true: float, noises: float, epsilon: float) -> tuple[float, float, float]:
    """Chernoff's bound on the probability that a released mean is at least ``mean`` if the true one is ``true``: e^-x.

    The release is the mean of n rewards in [0, 1], plus ``noises`` independent Laplace variables of scale 1/(epsilon
    n). A reward with mean u has E[e^(l X)] <= 1 - u + u e^l (Hoeffding 1963), and a Laplace variable on the sum has
    1 / (1 - l^2/epsilon^2), so x is the largest value of l n mean - n log(1 - u + u e^l) + noises log(1 -
    l^2/epsilon^2) over 0 <= l < epsilon. The result is the value at the l where Newton's method ends, which is never
    more. Returns x, and its first and second derivative in the true mean. For a mean that is too low, pass 1 - mean and
    1 - true. Without noise x is n kl(mean, true).

    >>> from dpbandits.numerics import kl
    >>> x, slope, bend = chernoff(100.0, 0.6, 0.5, 0.0, 1.0)
    >>> round(x, 6), round(100 * kl(0.6, 0.5), 6), round(slope, 3), round(bend, 2)
    (2.013551, 2.013551, -40.0, 400.0)
    >>> round(chernoff(100.0, 0.6, 0.5, 1.0, 1.0)[0], 6), chernoff(100.0, 0.4, 0.5, 1.0, 1.0)[0]
    (1.851199, 0.0)
    """
    true = max(true, 1e-300)
    if mean <= true:
        return 0.0, 0.0, 0.0
    high = 50.0 if noises == 0.0 else min(epsilon, 50.0)  # rates above 50 change nothing: e^-50
    low, rate = 0.0, 0.5 * high
    if mean < 1.0:
        rate = min(rate, math.log(mean / true) - math.log((1.0 - mean) / (1.0 - true)))
    square, bend = epsilon * epsilon, 0.0
    for _ in range(60):
        grown = true * math.exp(rate)
        share, room = grown / (1.0 - true + grown), square - rate * rate
        slope, bend = n * (share - mean), n * share * (1.0 - share)
        if noises > 0.0:
            slope += 2.0 * noises * rate / room
            bend += 2.0 * noises * (square + rate * rate) / (room * room)
        if slope > 0.0:
            high = rate
        else:
            low = rate
        step = newton_step(rate, slope, bend, low, high)
        rate += step
        if abs(step) <= 1e-6 * rate:
            break
    change = math.expm1(rate)
    normal = 1.0 + true * change
    x = n * (rate * mean - math.log(normal))
    if noises > 0.0:
        x += noises * math.log1p(-rate * rate / square)
    slope, cross = n * change / normal, n * (1.0 + change) / (normal * normal)
    return max(x, 0.0), -slope, slope * slope / n + cross * cross / bend


def evidence_between(
    n: float, higher: float, noises: float, other_n: float, lower: float, other_noises: float, epsilon: float
) -> float:
    """The least total of ``chernoff`` over all common means of two arms whose released means are ``higher`` and
    ``lower``: the evidence against the second being at least as good as the first.

    The total is convex in the common mean. Its least point is found by Newton's method, and a bound on the remaining
    error is subtracted, so the result is never too large.

    >>> from dpbandits.numerics import kl
    >>> round(evidence_between(100.0, 0.7, 1.0, 100.0, 0.3, 1.0, 1.0), 3)
    14.651
    >>> round(evidence_between(100.0, 0.7, 0.0, 100.0, 0.3, 0.0, 1.0) - 200 * kl(0.7, 0.5), 6)
    -0.0
    """
    low, high = unit(lower), unit(higher)
    if low >= high:
        return 0.0
    least, common = 0.0, 0.5 * (low + high)
    for _ in range(60):
        above, falls, bend = chernoff(n, higher, common, noises, epsilon)
        below, rises, other_bend = chernoff(other_n, 1.0 - lower, 1.0 - common, other_noises, epsilon)
        slope = falls - rises
        if slope > 0.0:
            high = common
        else:
            low = common
        least = max(least, above + below - abs(slope) * (high - low))
        step = newton_step(common, slope, bend + other_bend, low, high)
        if slope * slope <= 1e-6 * (bend + other_bend) or high - low <= 1e-15:
            break
        common += step
    return least


def corrected(evidence: float, correction: float) -> float:
    """max(0, e - k log(1 + e)), for evidence e and correction k: e less an allowance for chance. It grows with e.

    >>> corrected(10.0, 0.0), round(corrected(10.0, 1.0), 4), corrected(0.5, 1.5), corrected(math.inf, 1.0)
    (10.0, 7.6021, 0.0, inf)
    """
    if correction == 0.0 or evidence == 0.0 or evidence == math.inf:
        return evidence
    return max(evidence - correction * math.log(1.0 + evidence), 0.0)  # log1p takes longer


def corrected_slope(evidence: float, correction: float) -> float:
    """The slope of e - k log(1 + e), which grows with e and is at most 1; 0 where it is negative.

    >>> corrected_slope(1.0, 1.0), corrected_slope(0.0, 1.5), corrected_slope(3.0, 0.0)
    (0.5, 0.0, 1.0)
    """
    return max(1.0 - correction / (1.0 + evidence), 0.0)


def corrected_room(evidence: float, correction: float, more: float) -> float:
    """How much evidence can be added before ``corrected`` grows by ``more`` >= 0: a lower bound, exact for k = 0.

    e - k log(1 + e) is convex, so it reaches ``more`` before its tangent at e does, and up to there it is never steeper
    than where the tangent does.

    >>> round(corrected_room(1.0, 1.0, 0.1), 4), corrected_room(1.0, 0.0, 0.1), corrected_room(0.1, 1.5, 0.2)
    (0.1833, 0.1, 0.2)
    >>> corrected(1.0 + 0.1833, 1.0) < corrected(1.0, 1.0) + 0.1
    True
    """
    slope = corrected_slope(evidence, correction)
    if more <= 0.0 or slope <= 0.0:
        return more
    return more / corrected_slope(evidence + more / slope, correction)


def uncorrected(index: float, correction: float) -> float:
    """The evidence e with ``corrected(e, correction) = index`` > 0: Newton's method on a convex function.

    >>> round(uncorrected(corrected(10.0, 1.5), 1.5), 9), uncorrected(3.0, 0.0)
    (10.0, 3.0)
    """
    if correction == 0.0:
        return index
    e = 2.0 * (index + correction) + 1.0
    for _ in range(50):
        step = (e - correction * math.log1p(e) - index) / (1.0 - correction / (1.0 + e))
        e -= step
        if abs(step) <= 1e-13 * e:
            break
    return e
