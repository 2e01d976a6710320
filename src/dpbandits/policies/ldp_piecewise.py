"""Local privacy for rewards that are not just 0 or 1: the piecewise mechanism, and IMED on its responses."""

from __future__ import annotations

from dpbandits.agents import LikelihoodIMED
from dpbandits.curators import LocalPiecewise
from dpbandits.policies.policy import Parts, published

CORRECTION = 1.0


@published(
    "Wang et al. 2019 (responses); Honda & Takemura 2015 (index)",
    "the responses are on a grid, where the privacy of what is drawn is proved; the index is the likelihood ratio of "
    "normal responses, and no theorem on its regret is proved",
    cost="noise",
    unbounded="ldp-imed-bs",
    relative="ldp-ucb-l",
)
def ldp_imed_p(arms: int, *, epsilon: float, correction: float = CORRECTION) -> Parts:
    """LDP-IMED-P: every reward passes the piecewise mechanism, and IMED is played on the responses.

    Use it for rewards between 0 and 1 and an epsilon of 1.5 or more. For rewards of 0 and 1 use LDP-IMED-B: at every
    epsilon a randomised bit tells at least as much as any other private response (Kairouz et al. 2014).

    With mean and V the mean and the variance of an arm's n debiased responses, V raised by 1/n, and e = n/2 log(1 +
    (best mean - mean)^2 / V), the index is max(0, e - correction log(1 + e)) + log n, and the least is played.
    docs/papers/strongest.md has what was measured.

    Reference: Wang et al. 2019, Algorithm 2; Honda & Takemura 2015. The grid and the correction are ours.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-imed-p", arms="beta(9,1)+beta(6,4)", epsilon=2, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    10
    """
    return Parts(LikelihoodIMED.start(arms, correction=correction), LocalPiecewise.start(arms, epsilon=epsilon))
