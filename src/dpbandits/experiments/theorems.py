"""Theorems that bound regret, judged by simulations: is the mean regret below the bound at every checkpoint?"""

from __future__ import annotations

import inspect

import numpy as np

from dpbandits.bounds import Problem, theorem_named
from dpbandits.experiments.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    ClaimPart,
    mean,
    ratio_to,
    runs_needed,
    upper_end,
)
from dpbandits.simulation import Trace

MEASURED = "mean regret over the bound, at the checkpoint where it is largest"
TOLERANCE = "at most 1 at every checkpoint, beyond three standard errors"


def below_theorem(name: str, trace: Trace, theorem: str) -> ClaimPart:
    """Whether the mean regret of a simulation is below a theorem's bound on it at every checkpoint.

    A claim that simulations refute has a value at the horizon alone, and is judged there. Where rare runs are known to
    go badly wrong, "below" needs an upper end that holds with heavy tails.
    """
    asked = trace.simulation
    problem = Problem.on(asked.arms, asked.horizon, epsilon=asked.epsilon, levels=asked.levels)
    bounding = theorem_named(theorem)
    options = {key: asked.options[key] for key in inspect.signature(bounding).parameters if key in asked.options}
    bound = bounding(problem, **options)
    if bound.rate is not None:
        raise ValueError(f"{theorem} is about the limit of regret / log T, and no simulation can decide it")
    limits = bound.at(trace.checkpoints)
    if bound.claimed is not None:
        limits[-1] = bound.claimed
    judged = np.flatnonzero(~np.isnan(limits)).tolist()
    if not judged:
        raise ValueError(f"{theorem} has no value for {name}: {bound.holds}")
    shares = [ratio_to(mean(trace.regret[:, at]), float(limits[at])) for at in judged]
    ends = [share.value + share.margin for share in shares]
    if asked.policy.traits.caution:  # rare runs dominate the mean, and Student's interval does not account for them
        ends = [upper_end(trace.regret[:, at], _most(trace, at)) / float(limits[at]) for at in judged]
    worst = max(shares, key=lambda share: share.value)
    text = f"{worst} of the bound"
    if max(ends) <= 1.0:
        return ClaimPart(name, REPRODUCED, text)
    if any(share.value - share.margin > 1.0 for share in shares):
        return ClaimPart(name, NOT_REPRODUCED, text)
    if asked.policy.traits.caution:
        return ClaimPart(name, UNDECIDED, text, "More runs are needed: rare runs decide the mean.")
    return ClaimPart(name, UNDECIDED, text, runs_needed(worst._replace(value=abs(worst.value - 1.0)), trace.runs))


def _most(trace: Trace, at: int) -> float:
    """The most that a run can lose until a checkpoint."""
    return float(np.ptp(trace.means) * trace.checkpoints[at])
