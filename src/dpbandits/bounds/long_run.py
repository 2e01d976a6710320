"""What policies that follow an optimal index lose in the long run: upper bounds on the limit of regret / log T.

None of them says anything about a given horizon: the terms that do not grow with log T are not computed, and can be
large. docs/papers/strongest.md proves those that are marked as checked, for the policies as they are shipped.
"""

from __future__ import annotations

from dpbandits.bounds.bound import Curve, DoesNotHold, LongRun, theorem
from dpbandits.bounds.central import private_rate
from dpbandits.bounds.local import bit_rate, sigmoid_bit_rate
from dpbandits.bounds.problem import Problem
from dpbandits.curators.likelihood import HIGH, LOW

__all__ = [
    "dp_glr_imed",
    "dp_imed",
    "dp_klucb",
    "ldp_bits_of_normal",
    "ldp_imed_b",
    "ldp_klucb_b",
    "ldp_ts_b",
    "ldp_ts_bs",
]

AZIZE = "Azize, Wu, Honda, Orabona, Ito & Basu 2025"
GAJANE = "Gajane, Urvoy & Kaufmann 2018"
LIMIT = "as T -> infinity; not a bound at a finite horizon"
IN_THE_LIMIT = f"rewards in [0, 1]; {LIMIT}"
BITS = f"rewards in [0, 1] that reach the policy through Convert-to-Bernoulli; {LIMIT}"
NORMAL_BITS = f"normal rewards with the same standard deviation on every arm; {LIMIT}"
BATCHES = (
    "the paper's proof was not available, and its batch lengths may differ; ours is Theorem 3 of "
    "docs/papers/strongest.md, for any first batch"
)


@theorem(Problem, "upper", AZIZE, IN_THE_LIMIT, form="corrected", policies=("dp-klucb",), trust="central", note=BATCHES)
def dp_klucb(problem: Problem, ratio: float = 2.0) -> Curve:
    """ratio sum gap / d_eps(mean, best) * log T.

    >>> bound = dp_klucb(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1.0))
    >>> round(bound.rate, 3), round(bound.value, 1)
    (2.485, 34.3)
    """
    return _batched(problem, ratio)


@theorem(
    Problem,
    "upper",
    AZIZE,
    IN_THE_LIMIT,
    form="corrected",
    policies=("dp-imed",),
    trust="central",
    note=f"{BATCHES}. At 10^7 rounds rare runs still decide its mean",
)
def dp_imed(problem: Problem, ratio: float = 2.0) -> Curve:
    """ratio sum gap / d_eps(mean, best) * log T.

    >>> round(dp_imed(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1.0), ratio=1.1).rate, 3)
    1.367
    """
    return _batched(problem, ratio)


@theorem(
    Problem,
    "upper",
    "ours, docs/papers/strongest.md, Theorem 3",
    f"rewards in [0, 1], means from 1e-9 to 1 - 1e-9; any correction and any first batch; {LIMIT}",
    form="proved",
    policies=("dp-glr-imed",),
    trust="central",
)
def dp_glr_imed(problem: Problem, ratio: float = 1.5) -> Curve:
    """ratio sum gap / d_eps(mean, best) * log T.

    >>> round(dp_glr_imed(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1.0)).rate, 3)
    1.864
    """
    for mean in problem.means:
        if not LOW <= mean <= HIGH:
            raise DoesNotHold(
                f"means must lie in [1e-9, 1 - 1e-9], where the policy keeps its estimates, and one is {mean:g}"
            )
    return _batched(problem, ratio)


@theorem(
    Problem,
    "upper",
    f"Cappe, Garivier, Maillard, Munos & Stoltz 2013, Theorem 1, on randomised responses ({GAJANE})",
    BITS,
    form="corrected",
    policies=("ldp-klucb-b",),
    trust="local",
    note="the theorem is on exploration with log t + 3 log log t; the policy has log t, for which Theorem 3 of "
    "docs/papers/strongest.md proves the same limit",
)
def ldp_klucb_b(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T: the limit is ldp-lower-randomised-response.

    >>> round(ldp_klucb_b(Problem.bernoulli([0.9, 0.6], 1000, epsilon=0.5)).rate, 2)
    27.15
    """
    return LongRun(bit_rate(problem))


@theorem(
    Problem,
    "upper",
    "Honda & Takemura 2015, on randomised responses",
    f"any correction k; {BITS}",
    form="corrected",
    policies=("ldp-imed-b",),
    trust="local",
    note="the paper's theorem is on IMED, which is k = 0; Theorem 3 of docs/papers/strongest.md proves the same limit "
    "for every k",
)
def ldp_imed_b(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T: the limit is ldp-lower-randomised-response.

    >>> round(ldp_imed_b(Problem.bernoulli([0.9, 0.6], 1000, epsilon=0.5)).rate, 2)
    27.15
    """
    return LongRun(bit_rate(problem))


@theorem(
    Problem,
    "upper",
    f"Kaufmann, Korda & Munos 2012, Theorem 1, on randomised responses ({GAJANE})",
    f"one best arm; {BITS}",
    policies=("ldp-ts-b",),
    trust="local",
    note="the proof was not available to us",
    checked=False,
)
def ldp_ts_b(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T: the limit is ldp-lower-randomised-response.

    >>> ldp_ts_b(Problem.bernoulli([0.9, 0.9, 0.6], 1000, epsilon=0.5)).holds
    'does not apply: there must be one best arm, and there are 2'
    """
    _need_one_best(problem)
    return LongRun(bit_rate(problem))


@theorem(
    Problem,
    "upper",
    "ours, docs/papers/strongest.md, Theorem 3",
    f"any correction k; {NORMAL_BITS}",
    form="proved",
    policies=("ldp-klucb-bs", "ldp-imed-bs"),
    trust="local",
)
def ldp_bits_of_normal(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T, of responses to the logistic function of the reward.

    >>> round(ldp_bits_of_normal(Problem.gaussian([0.9, 0.6], 1000, epsilon=0.5)).rate, 1)
    767.2
    """
    return LongRun(sigmoid_bit_rate(problem))


@theorem(
    Problem,
    "upper",
    f"Kaufmann, Korda & Munos 2012, Theorem 1, on randomised responses ({GAJANE})",
    f"one best arm; {NORMAL_BITS}",
    policies=("ldp-ts-bs",),
    trust="local",
    note="the proof was not available to us",
    checked=False,
)
def ldp_ts_bs(problem: Problem) -> Curve:
    """sum gap / kl(response mean, best response mean) * log T, of responses to the logistic function of the reward.

    >>> round(ldp_ts_bs(Problem.gaussian([0.9, 0.6], 1000, epsilon=0.5)).rate, 1)
    767.2
    """
    _need_one_best(problem)
    return LongRun(sigmoid_bit_rate(problem))


def _need_one_best(problem: Problem) -> None:
    best = problem.means.count(problem.best)
    if best > 1:
        raise DoesNotHold(f"there must be one best arm, and there are {best}")


def _batched(problem: Problem, ratio: float) -> Curve:
    """What an optimal index on private sums of batches loses, if an arm's batches grow by this ratio."""
    if ratio <= 1.0:
        raise DoesNotHold(f"ratio must be above 1, and is {ratio:g}")
    return LongRun(ratio * private_rate(problem))
