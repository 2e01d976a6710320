"""Local privacy, a level for each user: the heterogeneous-levels paper (HeLDP)."""

from __future__ import annotations

from typing import Any

from dpbandits.agents import UCB
from dpbandits.curators import HeterogeneousBernoulli, HeterogeneousLaplace
from dpbandits.policies.ldp_ucb import FORCED
from dpbandits.policies.policy import AUTO, Parts, published

PAPER = "Heterogeneous local differential privacy (HeLDP)"
UNSEEN = "of several arms without a response, the one whose turn it is comes first (the paper leaves ties open)"
SUPPLEMENT = "; the paper's supplement with the details is not available"
LEVELED: dict[str, Any] = {
    "cost": "noise",
    "threshold": "epsilon_min",
    "sample": {"epsilon_min": 1.0},
    "advised": lambda horizon: {"epsilon_min": AUTO},
}
LAPLACE, BITS = {**LEVELED, "levels": "laplace"}, {**LEVELED, "levels": "bernoulli"}


@published(PAPER, FORCED, **LAPLACE, unbounded="heldp-ucb-ls")
def heldp_ucb_l(arms: int, *, epsilon_min: float) -> Parts:
    """HeLDP-UCB-L: Laplace noise at each user's own level; responses below ``epsilon_min`` are discarded.

    With A the sum of level^-2 over the n accepted responses of an arm, its index is their mean plus
    sqrt(2 log t / n) + sqrt(32 A log t) / n; an arm with A <= 4 log(t+1) / epsilon_min^2 is played first.

    Reference: HeLDP, Curator 1 and Agent 2.
    Guarantee: each response is private on its own at its user's level (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-ucb-l", arms="0.9,0.6", levels="choice(0,1,2)", options={"epsilon_min": 1},
    ...                     horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    104
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), HeterogeneousLaplace.start(arms, epsilon_min=epsilon_min))


@published(PAPER, UNSEEN, **BITS, unbounded="heldp-ucb-bs")
def heldp_ucb_b(arms: int, *, epsilon_min: float) -> Parts:
    """HeLDP-UCB-B: one private bit at each user's own level, debiased; responses below ``epsilon_min`` are discarded.

    With B the sum of coth(level/2)^2 over the n accepted responses of an arm, its index is the mean of the debiased
    responses plus sqrt(2 B log t) / n.

    Reference: HeLDP, Curator 3 and Agent 4.
    Guarantee: each response is private on its own at its user's level (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-ucb-b", arms="0.9,0.6", levels="choice(0,1,2)", options={"epsilon_min": 1},
    ...                     horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    64
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), HeterogeneousBernoulli.start(arms, epsilon_min=epsilon_min))


@published(PAPER, FORCED + SUPPLEMENT, **LAPLACE, any_reward=True)
def heldp_ucb_ls(arms: int, *, epsilon_min: float) -> Parts:
    """HeLDP-UCB-LS: HeLDP-UCB-L on the logistic function of the reward, for rewards of any size.

    Reference: HeLDP, Corollary 13.
    Guarantee: each response is private on its own at its user's level (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-ucb-ls", arms="normal(0.9,1)+normal(0.4,1)", levels="choice(0,1,2)",
    ...                     options={"epsilon_min": 1}, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    224
    """
    curator = HeterogeneousLaplace.start(arms, epsilon_min=epsilon_min, sigmoid=True)
    return Parts(UCB.start(arms, alpha=4.0, lag=1), curator)


@published(PAPER, UNSEEN + SUPPLEMENT, **BITS, any_reward=True)
def heldp_ucb_bs(arms: int, *, epsilon_min: float) -> Parts:
    """HeLDP-UCB-BS: HeLDP-UCB-B on the logistic function of the reward, for rewards of any size.

    Reference: HeLDP, Corollary 13.
    Guarantee: each response is private on its own at its user's level (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("heldp-ucb-bs", arms="normal(0.9,1)+normal(0.4,1)", levels="choice(0,1,2)",
    ...                     options={"epsilon_min": 1}, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    201
    """
    curator = HeterogeneousBernoulli.start(arms, epsilon_min=epsilon_min, sigmoid=True)
    return Parts(UCB.start(arms, alpha=4.0, lag=1), curator)
