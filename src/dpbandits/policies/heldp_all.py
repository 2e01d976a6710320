"""Local privacy, a level for each user, and nobody discarded: ours, on the responses of the HeLDP paper."""

from __future__ import annotations

from dpbandits.agents import LikelihoodIMED
from dpbandits.curators import BinnedBernoulli, WeightedBernoulli, WeightedLaplace
from dpbandits.policies.policy import Parts, published

PAPER = "ours, on the responses of the heterogeneous-levels paper (HeLDP)"
NEW = "it is new here; no theorem on its regret is proved"
CORRECTION = 1.0


@published(PAPER, NEW, cost="noise", levels="bernoulli", relative="heldp-ucb-b")
def heldp_weighted_b(arms: int, *, correction: float = CORRECTION) -> Parts:
    """HeLDP-Weighted-B: one private bit at each user's own level, weighted by what it tells; nobody is discarded.

    A bit at level e has the attenuation s = tanh(e/2) and the weight s^2. With W the sum of an arm's weights and mu the
    weighted mean of its debiased bits, the index is max(0, x - correction log(1 + x)) + max(0, log W), where
    x = 2 W (best mu - mu)^2, and the least is played.

    Reference: HeLDP, Curator 3, with the index of Honda & Takemura 2015; docs/papers/strongest.md.
    Guarantee: each response is private on its own at its user's level (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-weighted-b", arms="0.9,0.6", levels="choice(0,1,2)", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    35
    """
    return Parts(LikelihoodIMED.start(arms, correction=correction), WeightedBernoulli.start(arms))


@published(PAPER, NEW, cost="divergence", levels="bernoulli", relative="heldp-ucb-b")
def heldp_glr_b(arms: int, *, bins: int = 12, correction: float = CORRECTION) -> Parts:
    """HeLDP-GLR-B: one private bit at each user's own level, and the joint likelihood of all bits; nobody is discarded.

    Bits are counted in ``bins`` bins of their attenuation. J(q) is the sum of n kl(share of ones, 1/2 + (q - 1/2) s)
    over the bins, mu its least point and x = J(best mu) - J(mu). With W the sum of squared attenuations, the index is
    max(0, x - correction log(1 + x)) + max(0, log W), and the least is played.

    Reference: HeLDP, Curator 3, with the index of Honda & Takemura 2015; docs/papers/strongest.md.
    Guarantee: each response is private on its own at its user's level (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-glr-b", arms="0.9,0.6", levels="choice(0,1,2)", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    31
    """
    return Parts(LikelihoodIMED.start(arms, correction=correction), BinnedBernoulli.start(arms, bins=bins))


@published(
    PAPER,
    NEW,
    cost="noise",
    levels="laplace",
    relative="heldp-ucb-l",
    caution="in about one run of a thousand (two arms, five levels) large noise makes the best arm look bad for long",
)
def heldp_weighted_l(arms: int, *, correction: float = CORRECTION) -> Parts:
    """HeLDP-Weighted-L: Laplace noise at each user's own level, weighted by what it tells; nobody is discarded.

    A response at level e has the weight e^2 / (e^2 + 8), the inverse of its variance up to a factor. The index is that
    of HeLDP-Weighted-B. For rewards of 0 and 1, bits tell more at every level. This is for deployments whose devices
    send Laplace responses.

    Reference: HeLDP, Curator 1, with the index of Honda & Takemura 2015; docs/papers/strongest.md.
    Guarantee: each response is private on its own at its user's level (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-weighted-l", arms="0.9,0.6", levels="choice(0,1,2)", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    53
    """
    return Parts(LikelihoodIMED.start(arms, correction=correction), WeightedLaplace.start(arms))
