"""Find the best arm, privately, and stop: AdaP-TT and DP-TT with a trusted server, CTB-TT without."""

from __future__ import annotations

from dpbandits.agents import BitsTest, SumsTest, TopTwo, batches
from dpbandits.checks import positive
from dpbandits.curators import Batch, LocalBernoulli, RunningSum
from dpbandits.policies.first_batch import first_batch
from dpbandits.policies.policy import Parts, published

TT_2023 = "Azize, Jourdan, Al Marjani & Basu 2023"
TT_2024 = "Azize, Jourdan, Al Marjani & Basu 2024"
TT_2025 = "Jourdan & Azize 2025"
OURS = (
    "the leader is the arm with the highest released mean, the rival has the least evidence plus log n, the leader is "
    "played while it has had at most half of all plays, a batch is played without a break, and the stopping threshold "
    "is ours: it is proved for rewards in [0, 1] and is lower than the published one"
)
BY_EPSILON = "10/min(1, epsilon)"
FEW = {"first": 1, "ratio": 8.0}
BETA = 0.05


def _first_batch(first: float | str, epsilon: float) -> int:
    """A number, or 10 / min(1, epsilon) rewards, because shorter batches decide little."""
    return first_batch(first, BY_EPSILON, 10.0 / min(1.0, positive("epsilon", epsilon)))


def by_horizon(horizon: int) -> dict[str, float]:
    """1/horizon: for low regret, a wrong arm must be named in at most one of ``horizon`` runs."""
    return {"beta": 1.0 / horizon}


@published(TT_2023, OURS, cost="stint", stops=True, low_regret=False, short=FEW, advised=by_horizon)
def adap_tt(
    arms: int, *, epsilon: float, beta: float = BETA, ratio: float = 2.0, first: float | str = BY_EPSILON
) -> Parts:
    """AdaP-TT: find the best arm and stop, from the private mean of each arm's last batch.

    It names an arm and plays it for ever. With probability at least 1 - ``beta`` that is a best one, for any rewards in
    [0, 1], whatever the arms are (it is delta-correct, with delta = ``beta``): see ``agents.SumsTest`` for the proof.
    The releases of earlier batches are forgotten, as published; ``dp-tt`` keeps them, and needs fewer rounds on
    most problems.

    Reference: Azize et al. 2023, Algorithm 1; the stopping rule is ours.
    Guarantee: the sequence of choices, when it stops and what it names are epsilon-private (pure, central).

    >>> import dpbandits as dp
    >>> trace = dp.simulate("adap-tt", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> trace.stops.wrong, round(trace.stops.rounds.mean())
    (0, 632)
    >>> round(trace.final_regret.mean())
    70
    """
    test = SumsTest.start(arms, epsilon=epsilon, beta=beta)
    agent = TopTwo.start(arms, test, ratio=ratio, first=_first_batch(first, epsilon))
    return Parts(agent, Batch.start(arms, epsilon=epsilon))


@published(
    TT_2025,
    OURS + "; the paper's text was not available, only its abstract: batches grow geometrically and are all kept",
    cost="stint",
    stops=True,
    low_regret=False,
    short=FEW,
    advised=by_horizon,
)
def dp_tt(
    arms: int, *, epsilon: float, beta: float = BETA, ratio: float = 1.5, first: float | str = BY_EPSILON
) -> Parts:
    """DP-TT: find the best arm and stop, from all private batch sums of each arm.

    It names an arm and plays it for ever. With probability at least 1 - ``beta`` that is a best one, for any rewards in
    [0, 1], whatever the arms are (it is delta-correct, with delta = ``beta``): see ``agents.SumsTest`` for the proof.
    The sum of an arm's k batches carries k noises, and the test accounts for all of them.

    Reference: Jourdan & Azize 2025; the stopping rule is ours.
    Guarantee: the sequence of choices, when it stops and what it names are epsilon-private (pure, central).

    >>> import dpbandits as dp
    >>> trace = dp.simulate("dp-tt", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> trace.stops.wrong, round(trace.stops.rounds.mean())
    (0, 400)
    >>> round(trace.final_regret.mean())
    51
    """
    test, first = SumsTest.start(arms, epsilon=epsilon, beta=beta, keeps=True), _first_batch(first, epsilon)
    agent = TopTwo.start(arms, test, ratio=ratio, first=first)
    return Parts(agent, RunningSum.start(arms, epsilon=epsilon, most=batches(ratio, first)))


@published(
    TT_2024,
    "the paper's text was not available, only its abstract: the leader is the arm with the highest mean of bits, the "
    "rival has the least evidence plus log n, choices stand until the arm's count has grown by 5 %, and the stopping "
    "threshold is the one that the proof of Theorem 10 of Garivier & Kaufmann 2016 reaches before its last step, for "
    "two arms at a time",
    cost="bulk",
    stops=True,
    low_regret=False,
    short={"ratio": 8.0},
    advised=by_horizon,
    relative="ldp-ucb-b",
)
def ctb_tt(arms: int, *, epsilon: float, beta: float = BETA, ratio: float = 1.05) -> Parts:
    """CTB-TT: find the best arm and stop, from one private bit for every reward.

    It names an arm and plays it for ever. With probability at least 1 - ``beta`` that is a best one, for any rewards in
    [0, 1], whatever the arms are (it is delta-correct, with delta = ``beta``): see ``agents.BitsTest`` for the proof.

    Reference: Azize et al. 2024, CTB-TT; Ren et al. 2020, Curator 3 (responses); Garivier & Kaufmann 2016 (stopping).
    Guarantee: each response is epsilon-private on its own (pure, local), for rewards in [0, 1].

    >>> import dpbandits as dp
    >>> trace = dp.simulate("ctb-tt", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> trace.stops.wrong, round(trace.stops.rounds.mean())
    (0, 1087)
    >>> round(trace.final_regret.mean())
    160
    """
    agent = TopTwo.start(arms, BitsTest.start(arms, beta=beta), ratio=ratio, first=1)
    return Parts(agent, LocalBernoulli.start(arms, epsilon=epsilon))
