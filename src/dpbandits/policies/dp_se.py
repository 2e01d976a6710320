"""Central privacy by elimination: Sajed & Sheffet 2019."""

from __future__ import annotations

from dpbandits.agents import Elimination
from dpbandits.checks import at_least, fraction
from dpbandits.curators import Batch
from dpbandits.policies.policy import Parts, published

BY_HORIZON = "1/horizon"


@published(
    "Sajed & Sheffet 2019",
    "live, the plays of an epoch are made arm by arm rather than in turns; what is released after it is the same",
    cost="stint",
    in_turns=True,
    stops=True,
    short={"epoch_factor": 1e-6},
    renamed={"scale": "epoch_factor"},
)
def dp_se(
    arms: int, *, epsilon: float, horizon: int, beta: float | str = BY_HORIZON, epoch_factor: float = 1.0
) -> Parts:
    """DP-SE: successive elimination on fresh private means, with gaps halved from epoch to epoch.

    ``beta`` bounds the probability of dropping the best arm. ``epoch_factor`` multiplies the number of plays of an
    epoch; privacy does not depend on that number. At 1, as published, an epoch has hundreds of plays. A small factor
    lets the exact verifier see several epochs within a few rounds.

    Reference: Sajed & Sheffet 2019, Algorithm 2.
    Guarantee: the sequence of choices is epsilon-private (pure, central).

    >>> import dpbandits as dp
    >>> trace = dp.simulate("dp-se", arms="0.75,0.625,0.5,0.375,0.25", epsilon=1, horizon=100_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    3337
    """
    failure = 1.0 / at_least("horizon", horizon, 2) if beta == BY_HORIZON else fraction("beta", beta)  # type: ignore[arg-type]
    agent = Elimination.start(arms, epsilon=epsilon, beta=failure, epoch_factor=epoch_factor)
    return Parts(agent, Batch.start(arms, epsilon=epsilon))
