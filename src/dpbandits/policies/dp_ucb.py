"""Central privacy by continual counting: Tossou & Dimitrakakis 2016, Algorithms 1 and 2."""

from __future__ import annotations

from dpbandits.agents import UCB
from dpbandits.checks import flag, positive
from dpbandits.curators import Hybrid, HybridOfAll
from dpbandits.policies.policy import Parts, published

PAPER = "Tossou & Dimitrakakis 2016"
SPLIT = (
    "epsilon is split between the two parts of the hybrid mechanism; as printed each gets all of it, "
    "which is 2 epsilon (as_printed=True does that, and says so)"
)
WIDTH = "; the tree's width counts its depth, floor(log2 n), where the paper writes log n"
PRINTED = {"as_printed": True}


@published(PAPER, SPLIT + WIDTH, cost="counter", overspends=PRINTED)
def dp_ucb_bound(arms: int, *, epsilon: float, as_printed: bool = False) -> Parts:
    """DP-UCB-BOUND: UCB on a hybrid counter of each arm's rewards, with a bonus that covers the counter's noise.

    The index is the private mean plus sqrt(2 log t / n) + nu / n, nu being sqrt(8) log(4 t^4) times 1/epsilon_log where
    n is a power of two, and times (1/epsilon_log + floor(log2 n)/epsilon_tree) elsewhere.

    Reference: Tossou & Dimitrakakis 2016, Algorithm 1.
    Guarantee: the sequence of choices is epsilon-private (pure, central).

    >>> import dpbandits as dp
    >>> trace = dp.simulate("dp-ucb-bound", arms="0.9,0.6", epsilon=1, horizon=100_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    614
    """
    part = positive("epsilon", epsilon) * (1.0 if flag("as_printed", as_printed) else 0.5)
    return Parts(UCB.start(arms, alpha=4.0), Hybrid.start(arms, epsilon_log=part, epsilon_tree=part))


@published(PAPER, SPLIT, cost="arms", overspends=PRINTED)
def dp_ucb(arms: int, *, epsilon: float, as_printed: bool = False) -> Parts:
    """DP-UCB: UCB1 on hybrid counters that are all fed at every round, with 0 for the arms that were not played.

    Reference: Tossou & Dimitrakakis 2016, Algorithm 2.
    Guarantee: the sequence of choices is epsilon-private (pure, central).

    >>> import dpbandits as dp
    >>> trace = dp.simulate("dp-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    250
    """
    part = positive("epsilon", epsilon) * (1.0 if flag("as_printed", as_printed) else 0.5)
    return Parts(UCB.start(arms, alpha=4.0), HybridOfAll.start(arms, epsilon_log=part, epsilon_tree=part))
