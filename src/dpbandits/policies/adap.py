"""Central privacy for any index: the framework of Azize & Basu 2022, on four indices."""

from __future__ import annotations

from dpbandits.agents import IMED, KLUCB, MOSS, UCB, Doubling
from dpbandits.curators import Batch
from dpbandits.policies.policy import Parts, published

PAPER = "Azize & Basu 2022"
PRACTICAL = {"alpha": 1.0}  # the proofs require alpha > 3; privacy does not depend on it
COUNTS = (
    "the mean of an episode is over its n rewards (Lemma 1 divides by n-1), the first reward of an arm counts as one "
    "sample (Eq. 7-8 would give half), and noise is drawn once for each episode and kept"
)


@published(PAPER, COUNTS, cost="stint", practical=PRACTICAL)
def adap_ucb(arms: int, *, epsilon: float, alpha: float = 3.1) -> Parts:
    """AdaP-UCB: UCB on the private mean of each arm's last episode, episodes doubling in length.

    The index at the start t of an episode is mean + sqrt(alpha log t / (2 s)) + alpha log t / (epsilon s), s being the
    length of the arm's last episode. The proof requires alpha > 3; privacy does not depend on it.

    Reference: Azize & Basu 2022, Algorithm 1 and Eq. (7).
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adap-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    169
    """
    return Parts(Doubling.start(arms, UCB.start(arms, alpha=alpha)), Batch.start(arms, epsilon=epsilon))


@published(PAPER, COUNTS, cost="stint", practical=PRACTICAL)
def adap_klucb(arms: int, *, epsilon: float, alpha: float = 3.1) -> Parts:
    """AdaP-KLUCB: KL-UCB on the private mean of each arm's last episode, episodes doubling in length.

    The index at the start t of an episode is the largest q with s kl(c, q) <= alpha log t, c being the private mean
    plus alpha log t / (epsilon s), clipped to [0, 1].

    Reference: Azize & Basu 2022, Algorithm 1 and Eq. (8).
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adap-klucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    146
    """
    return Parts(Doubling.start(arms, KLUCB.start(arms, alpha=alpha)), Batch.start(arms, epsilon=epsilon))


@published(
    PAPER,
    COUNTS + "; the paper does not treat this index: its framework is applied to it as to the others",
    cost="stint",
    practical=PRACTICAL,
)
def adap_imed(arms: int, *, epsilon: float, alpha: float = 3.1) -> Parts:
    """AdaP-IMED: IMED on the private mean of each arm's last episode, raised by alpha log t / (epsilon s) and clipped.

    Reference: Azize & Basu 2022, Algorithm 1, with the index of Honda & Takemura 2015.
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adap-imed", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    108
    """
    return Parts(Doubling.start(arms, IMED.start(arms, alpha=alpha)), Batch.start(arms, epsilon=epsilon))


@published(
    PAPER,
    COUNTS + "; the paper does not treat this index: its framework is applied to it as to the others",
    cost="stint",
)
def adap_moss(arms: int, *, epsilon: float, horizon: int) -> Parts:
    """AdaP-MOSS: MOSS on the private mean of each arm's last episode, its bonus covering the noise as well.

    The index is mean + sqrt(log+(T/(K s)) / s) + 2 log+(T/(K s)) / (epsilon s).

    Reference: Azize & Basu 2022, Algorithm 1, with the index of Audibert & Bubeck 2009.
    Guarantee: the sequence of choices is epsilon-private (pure, central), for ever.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adap-moss", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    77
    """
    return Parts(Doubling.start(arms, MOSS.start(arms, horizon=horizon)), Batch.start(arms, epsilon=epsilon))
