"""Without privacy: what the private policies are compared with."""

from __future__ import annotations

from dpbandits.agents import IMED, KLUCB, UCB, Thompson
from dpbandits.checks import flag
from dpbandits.curators import Plain
from dpbandits.policies.policy import Parts, published


@published("Auer, Cesa-Bianchi & Fischer 2002", cost="bulk", private=False, unbounded={"sigmoid": True})
def ucb1(arms: int, *, sigmoid: bool = False) -> Parts:
    """UCB1: the mean plus sqrt(2 log t / n), t being the completed rounds.

    With ``sigmoid`` it is fed the logistic function of each reward, the baseline of Ren et al. 2020, Figure 2.

    Reference: Auer, Cesa-Bianchi & Fischer 2002, Figure 1.
    Guarantee: none.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ucb1", arms="0.9,0.6", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    22
    """
    return Parts(UCB.start(arms, alpha=4.0, lag=1), Plain.start(arms, sigmoid=flag("sigmoid", sigmoid)))


@published(
    "Garivier & Cappe 2011",
    "the exploration function is log t, without the 3 log log t of the proof",
    cost="divergence",
    private=False,
)
def kl_ucb(arms: int) -> Parts:
    """KL-UCB: the largest q with n kl(mean, q) <= log t.

    Reference: Garivier & Cappe 2011, Algorithm 1 with c = 0, as its authors recommend.
    Guarantee: none.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("kl-ucb", arms="0.9,0.6", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    4
    """
    return Parts(KLUCB.start(arms), Plain.start(arms))


@published(
    "Thompson 1933; Agrawal & Goyal 2012",
    "rewards inside (0, 1) count as fractions of a success",
    cost="arms",
    private=False,
)
def thompson(arms: int) -> Parts:
    """Thompson sampling: Beta posteriors and a uniform prior.

    Reference: Thompson 1933; Agrawal & Goyal 2012, Algorithm 1.
    Guarantee: none.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("thompson", arms="0.9,0.6", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    4
    """
    return Parts(Thompson.start(arms), Plain.start(arms))


@published(
    "Honda & Takemura 2015",
    "the divergence is Bernoulli's, for every distribution in [0, 1]",
    cost="divergence",
    private=False,
)
def imed(arms: int) -> Parts:
    """IMED: the least n kl(mean, best mean) + log n.

    Reference: Honda & Takemura 2015, Algorithm 1.
    Guarantee: none.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("imed", arms="0.9,0.6", horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    4
    """
    return Parts(IMED.start(arms), Plain.start(arms))
