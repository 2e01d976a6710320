"""Central privacy by lazy releases: Hu, Huang & Mehta 2021, and Hu & Hegde 2022."""

from __future__ import annotations

from dpbandits.agents import LazyThompson, LazyUCB
from dpbandits.curators import Lazy
from dpbandits.policies.policy import Parts, published


@published(
    "Hu, Huang & Mehta 2021",
    "only its abstract was available: the constant c of sqrt(c log t / n) is not certain; c=3 agrees best with "
    "published results",
    cost="stint",
)
def anytime_lazy_ucb(arms: int, *, epsilon: float, c: float = 3.0) -> Parts:
    """Anytime-Lazy-UCB: UCB on private means of 1, 2, 4 .. new rewards, an arm chosen anew in every round.

    The index is mean + sqrt(c log t / n) + 3 log t / (epsilon n), n being the rewards in the arm's last release.

    Reference: Hu, Huang & Mehta 2021.
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("anytime-lazy-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    292
    """
    return Parts(LazyUCB.start(arms, c=c), Lazy.start(arms, epsilon=epsilon))


@published(
    "Hu & Hegde 2022",
    "only its abstract and others' notes were available; it agrees with the published results",
    cost="stint",
    relative="thompson",
)
def lazy_dp_ts(arms: int, *, epsilon: float) -> Parts:
    """Lazy-DP-TS: Thompson sampling on private means of 1, 2, 4 .. new rewards, raised by 3 log t / (epsilon n).

    Reference: Hu & Hegde 2022, Lazy-DP-TS.
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("lazy-dp-ts", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    95
    """
    return Parts(LazyThompson.start(arms), Lazy.start(arms, epsilon=epsilon))
