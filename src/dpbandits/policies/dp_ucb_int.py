"""Central privacy by rare releases: Tossou & Dimitrakakis 2016, Algorithm 3."""

from __future__ import annotations

import math

from dpbandits.agents import UCB, CoveringUCB
from dpbandits.checks import positive
from dpbandits.curators import Interval
from dpbandits.errors import InputError
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy.release_points import EXACT

DELTA = math.exp(-10)
COVER = 1.5
CAUTION = (
    "the index has no term for the noise of a stored release: in a few runs of a thousand (two arms, epsilon 1) a "
    "very low first release locks the best arm out, and the expected regret grows almost linearly"
)


@published(
    "Tossou & Dimitrakakis 2016",
    "a mean is released once, when the count reaches a new release point, and kept; as printed it is drawn anew in "
    "every round, which is not private. Rewards of the initial rounds count. The bonus is refreshed in every round. "
    "The default schedule is the y-rule of Lemma B.1: the constant interval can be longer than the horizon",
    cost="bulk",
    delta="delta",
    needs_horizon={"schedule": EXACT},
    caution=CAUTION,
    advised=lambda horizon: {"schedule": EXACT, "delta": min(DELTA, 0.1 / horizon)},
)
def dp_ucb_int(
    arms: int,
    *,
    epsilon: float,
    delta: float = DELTA,
    v: float = 1.1,
    schedule: str = "y",
    cover_noise: bool = False,
    cover_factor: float = COVER,
    horizon: int | None = None,
) -> Parts:
    """DP-UCB-INT: UCB1 on means of the whole history that are released at growing counts only.

    ``schedule`` is ``constant`` (Algorithm 3), or ``x`` or ``y`` (the rules of Lemma B.1), whose rate follows from the
    target by Corollary 3.2 and holds for ever; or ``exact``, the shortest constant interval that meets the target at
    the horizon by pure, optimal or Rényi composition. Only this schedule needs the horizon, and only it can have a
    ``delta`` of 0. The release at n rewards has Laplace noise of scale n^(v/2-1), 1 < v <= 1.5.

    Its expected regret grows almost linearly. The index has no term for the noise of a stored release, so a very low
    first release of the best arm locks it out in rare runs, and these decide the mean, as the first example shows.
    The regret bound of Theorem 3.5 is refuted by this: docs/papers/tossou2016.md has the shares and the means.
    ``cover_noise`` replaces the bonus by the largest shift that sampling and noise together explain at
    c log((t+1)/n), c being ``cover_factor``. A lock-out then ends by itself, and is longer than t with probability of
    about (t/n)^-c; a usual run costs more. The mean length of a lock-out is finite for c > 1 only.

    Reference: Tossou & Dimitrakakis 2016, Algorithm 3, Corollary 3.2, Lemma B.1.
    Guarantee: the sequence of choices is (epsilon, delta)-private (central), for ever; with the exact schedule, for at
    most ``horizon`` rounds.

    >>> import dpbandits as dp
    >>> lost = dp.simulate("dp-ucb-int", arms="0.9,0.6", epsilon=1, horizon=20_000, runs=2000, seed=0).final_regret
    >>> locked_out = lost > 10 * sorted(lost)[1000]
    >>> [round(float(x), 4) for x in (locked_out.mean(), lost[locked_out].sum() / lost.sum())]  # few runs, much regret
    [0.0065, 0.2323]
    >>> trace = dp.simulate("dp-ucb-int", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=10, seed=0)
    >>> round(trace.final_regret.mean())
    89
    """
    curator = Interval.start(
        arms, epsilon=epsilon, delta=delta, v=v, schedule=schedule, horizon=horizon, cover_noise=cover_noise
    )
    if positive("cover_factor", cover_factor) != COVER and not cover_noise:
        raise InputError("cover_factor", f"has an effect with cover_noise=true only, got {cover_factor:g} without it")
    agent = CoveringUCB.start(arms, c=cover_factor) if cover_noise else UCB.start(arms, alpha=4.0)
    return Parts(agent, curator)
