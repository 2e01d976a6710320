"""Local privacy, one level for all users: Ren, Zhou, Liu & Shroff 2020."""

from __future__ import annotations

from dpbandits.agents import UCB
from dpbandits.curators import LocalBernoulli, LocalLaplace
from dpbandits.policies.policy import Parts, published

PAPER = "Ren, Zhou, Liu & Shroff 2020"
FORCED = "of several arms that must be explored, the one whose turn it is comes first (the paper says 'an arm')"


@published(PAPER, FORCED, cost="noise", unbounded="ldp-ucb-ls")
def ldp_ucb_l(arms: int, *, epsilon: float) -> Parts:
    """LDP-UCB-L: Laplace noise on every reward, and a bonus that covers it.

    The index is the mean response plus sqrt(2 log t / n) + sqrt(32 log t / n) / epsilon, t being the completed rounds;
    an arm with n <= 4 log(t+1) is played first, because the bound on the noise holds only for larger n.

    Reference: Ren et al. 2020, Curator 1 and Agent 2.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ucb-l", arms="0.9,0.6", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    106
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), LocalLaplace.start(arms, epsilon=epsilon))


@published(PAPER, cost="bulk", unbounded="ldp-ucb-bs")
def ldp_ucb_b(arms: int, *, epsilon: float) -> Parts:
    """LDP-UCB-B: every reward becomes one private bit, and UCB1 is played on the bits.

    Reference: Ren et al. 2020, Curator 3 and Agent 4.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ucb-b", arms="0.9,0.6", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    60
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), LocalBernoulli.start(arms, epsilon=epsilon))


@published(PAPER, FORCED, cost="noise", any_reward=True)
def ldp_ucb_ls(arms: int, *, epsilon: float) -> Parts:
    """LDP-UCB-LS: LDP-UCB-L on the logistic function of the reward, for rewards of any size.

    The best arm stays the best only if the arms differ by a shift alone (the noise has the same law on every arm).

    Reference: Ren et al. 2020, Curator 5 and Agent 2.
    Guarantee: each response is epsilon-private on its own (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ucb-ls", arms="normal(0.9,1)+normal(0.4,1)", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    216
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), LocalLaplace.start(arms, epsilon=epsilon, sigmoid=True))


@published(PAPER, cost="bulk", any_reward=True)
def ldp_ucb_bs(arms: int, *, epsilon: float) -> Parts:
    """LDP-UCB-BS: LDP-UCB-B on the logistic function of the reward, for rewards of any size.

    The best arm stays the best only if the arms differ by a shift alone (the noise has the same law on every arm).

    Reference: Ren et al. 2020, Curator 6 and Agent 4 (Corollary 11 calls it LDP-UCB-B).
    Guarantee: each response is epsilon-private on its own (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ucb-bs", arms="normal(0.9,1)+normal(0.4,1)", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    193
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), LocalBernoulli.start(arms, epsilon=epsilon, sigmoid=True))
