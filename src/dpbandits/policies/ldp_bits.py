"""Local privacy with an optimal index: the responses of Ren et al. 2020, with indices optimal for Bernoulli rewards."""

from __future__ import annotations

from dpbandits.agents import IMED, KLUCB, Thompson
from dpbandits.curators import LocalBernoulli
from dpbandits.policies.policy import Parts, published

PAPER = "Ren, Zhou, Liu & Shroff 2020 (responses); "
KLUCB_PAPER = PAPER + "Gajane, Urvoy & Kaufmann 2018; Garivier & Cappe 2011 (index)"
TS_PAPER = PAPER + "Gajane, Urvoy & Kaufmann 2018; Thompson 1933 (index)"
TS_CAUTION = "in about one run of a thousand (two arms, epsilon 1) the first bits make the best arm look bad for long"
IMED_PAPER = PAPER + "Honda & Takemura 2015 (index)"
NO_LOG_LOG = "the exploration function is log t, without the 3 log log t of the proof"
CORRECTED = "evidence e counts as max(0, e - correction log(1 + e)); correction=0 is IMED as published"
CORRECTION = 1.0


@published(KLUCB_PAPER, NO_LOG_LOG, cost="divergence", unbounded="ldp-klucb-bs", relative="ldp-ucb-b")
def ldp_klucb_b(arms: int, *, epsilon: float) -> Parts:
    """LDP-KLUCB-B: every reward becomes one private bit, and KL-UCB is played on the bits.

    The bits of an arm are independent Bernoulli variables, so an index that is optimal for Bernoulli rewards is optimal
    on the bits: its regret grows like sum gap / kl(bit mean, best bit mean) log T. It is kl-UCB-CF of Gajane et al. for
    randomised response: the index is an increasing function of theirs.

    Reference: Ren et al. 2020, Curator 3; Gajane, Urvoy & Kaufmann 2018, kl-UCB-CF.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-klucb-b", arms="0.9,0.6", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    27
    """
    return Parts(KLUCB.start(arms), LocalBernoulli.start(arms, epsilon=epsilon))


@published(KLUCB_PAPER, NO_LOG_LOG, cost="divergence", any_reward=True, relative="ldp-ucb-bs")
def ldp_klucb_bs(arms: int, *, epsilon: float) -> Parts:
    """LDP-KLUCB-BS: LDP-KLUCB-B on the logistic function of the reward, for rewards of any size.

    The best arm stays the best only if the arms differ by a shift alone (the noise has the same law on every arm).

    Reference: Ren et al. 2020, Curator 6; Gajane, Urvoy & Kaufmann 2018, kl-UCB-CF.
    Guarantee: each response is epsilon-private on its own (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-klucb-bs", arms="normal(0.9,1)+normal(0.4,1)", epsilon=1, horizon=1000, runs=10)
    >>> round(trace.final_regret.mean())
    151
    """
    return Parts(KLUCB.start(arms), LocalBernoulli.start(arms, epsilon=epsilon, sigmoid=True))


@published(
    TS_PAPER,
    cost="arms",
    unbounded="ldp-ts-bs",
    relative="thompson",
    caution=TS_CAUTION,
)
def ldp_ts_b(arms: int, *, epsilon: float) -> Parts:
    """LDP-TS-B: every reward becomes one private bit, and Thompson sampling is played on the bits.

    It is TS-CF of Gajane et al. for randomised response. Others call the responses the linear mechanism.

    Reference: Ren et al. 2020, Curator 3; Gajane, Urvoy & Kaufmann 2018, TS-CF.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ts-b", arms="0.9,0.6", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    17
    """
    return Parts(Thompson.start(arms), LocalBernoulli.start(arms, epsilon=epsilon))


@published(
    TS_PAPER,
    cost="arms",
    any_reward=True,
    relative="thompson",
    caution=TS_CAUTION,
)
def ldp_ts_bs(arms: int, *, epsilon: float) -> Parts:
    """LDP-TS-BS: LDP-TS-B on the logistic function of the reward, for rewards of any size.

    The best arm stays the best only if the arms differ by a shift alone (the noise has the same law on every arm).

    Reference: Ren et al. 2020, Curator 6; Gajane, Urvoy & Kaufmann 2018, TS-CF.
    Guarantee: each response is epsilon-private on its own (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-ts-bs", arms="normal(0.9,1)+normal(0.4,1)", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    108
    """
    return Parts(Thompson.start(arms), LocalBernoulli.start(arms, epsilon=epsilon, sigmoid=True))


@published(IMED_PAPER, CORRECTED, cost="divergence", unbounded="ldp-imed-bs", relative="ldp-ucb-b", recommended=True)
def ldp_imed_b(arms: int, *, epsilon: float, correction: float = CORRECTION) -> Parts:
    """LDP-IMED-B: every reward becomes one private bit, and IMED is played on the bits.

    With e = n kl(mean bit, best mean bit) the index is max(0, e - correction log(1 + e)) + log n, and the least is
    played. Without the correction the mean regret is lower, but in a few of 10 000 runs the best arm is given up after
    bad luck at the start.

    Reference: Ren et al. 2020, Curator 3; Honda & Takemura 2015, Algorithm 1. The correction is ours.
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-imed-b", arms="0.9,0.6", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    38
    """
    return Parts(IMED.start(arms, correction=correction), LocalBernoulli.start(arms, epsilon=epsilon))


@published(IMED_PAPER, CORRECTED, cost="divergence", any_reward=True, relative="ldp-ucb-bs")
def ldp_imed_bs(arms: int, *, epsilon: float, correction: float = CORRECTION) -> Parts:
    """LDP-IMED-BS: LDP-IMED-B on the logistic function of the reward, for rewards of any size.

    The best arm stays the best only if the arms differ by a shift alone (the noise has the same law on every arm).

    Reference: Ren et al. 2020, Curator 6; Honda & Takemura 2015, Algorithm 1. The correction is ours.
    Guarantee: each response is epsilon-private on its own (pure, local), for any reward.

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ldp-imed-bs", arms="normal(0.9,1)+normal(0.4,1)", epsilon=1, horizon=1000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    182
    """
    return Parts(IMED.start(arms, correction=correction), LocalBernoulli.start(arms, epsilon=epsilon, sigmoid=True))
