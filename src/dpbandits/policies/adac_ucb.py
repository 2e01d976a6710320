"""Central privacy under zero concentration: Azize & Basu 2024."""

from __future__ import annotations

import math

from dpbandits.agents import Doubling, RootUCB
from dpbandits.checks import positive
from dpbandits.curators import GaussianBatch
from dpbandits.policies.policy import Parts, published

DELTA = math.exp(-10)
IMPLIED = "epsilon,delta"


@published(
    "Azize & Basu 2024",
    "only its abstract was available: the index is derived anew. If rho is not given, the largest rho that implies "
    "(epsilon, delta)-privacy is used",
    cost="stint",
    delta="delta",
)
def adac_ucb(
    arms: int, *, epsilon: float, delta: float = DELTA, rho: float | str = IMPLIED, alpha: float = 3.1
) -> Parts:
    """AdaC-UCB: AdaP-UCB with Gaussian noise, rho-zCDP.

    The index at the start t of an episode is mean + sqrt((1/(2s) + 1/(rho s^2)) alpha log t), s being the length of the
    arm's last episode. rho-zCDP implies (rho + 2 sqrt(rho log(1/delta)), delta)-privacy for every delta.

    Reference: Azize & Basu 2024, AdaC-UCB.
    Guarantee: the sequence of choices is rho-zCDP, and so (epsilon, delta)-private (central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adac-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    138
    """
    given = None if rho == IMPLIED else positive("rho", rho)  # type: ignore[arg-type]
    curator = GaussianBatch.start(arms, epsilon=epsilon, delta=delta, rho=given)
    return Parts(Doubling.start(arms, RootUCB.start(arms, alpha=alpha)), curator)
