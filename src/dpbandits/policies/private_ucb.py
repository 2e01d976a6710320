"""Central privacy with trees: Mishra & Thakurta 2015."""

from __future__ import annotations

import math

from dpbandits.agents import UCB
from dpbandits.checks import at_least, flag, fraction, positive
from dpbandits.curators import Tree
from dpbandits.errors import InputError
from dpbandits.policies.policy import Parts, published

FOLLOWS_T = "t^-4"


@published(
    "Mishra & Thakurta 2015",
    "the trees have floor(log2 T) + 1 heights, and a reward is in at most one node of each (the paper writes log T)",
    cost="counter",
    tight={"split_over_arms": False},
)
def private_ucb(
    arms: int, *, epsilon: float, horizon: int, gamma: float | str = 0.1, split_over_arms: bool = True
) -> Parts:
    """Private-UCB: UCB1 on a tree counter of each arm's rewards, with a bonus that covers all trees' noise.

    The index is the private mean plus sqrt(2 log t / n) + Gamma / n, Gamma = K log^2 T log(K T log T / gamma) /
    epsilon. Each tree gets epsilon/K as printed. But a reward is in one tree only, so with ``split_over_arms=False``
    each tree gets all of epsilon, and Gamma has no factor K, at the same guarantee. With ``gamma="t^-4"`` the bonus
    grows with t, as in the experiments of Tossou & Dimitrakakis 2016.

    Reference: Mishra & Thakurta 2015, Algorithm 1 ("DP-UCB" in Azize & Basu 2022).
    Guarantee: the sequence of choices is epsilon-private (pure, central), for at most ``horizon`` rounds.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("private-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    1100
    """
    horizon = at_least("horizon", horizon, 2)
    share = arms if flag("split_over_arms", split_over_arms) else 1
    if isinstance(gamma, str) and gamma != FOLLOWS_T:
        raise InputError("gamma", f"must be in (0, 1), or {FOLLOWS_T}, got {gamma!r:.80}")
    log_failure = None if isinstance(gamma, str) else math.log(1.0 / fraction("gamma", gamma))
    curator = Tree.start(
        arms,
        epsilon=epsilon,
        horizon=horizon,
        split_over=share,
        width_factor=share * math.log(horizon) ** 2 / positive("epsilon", epsilon),
        log_failure=log_failure,
    )
    return Parts(UCB.start(arms, alpha=4.0), curator)
