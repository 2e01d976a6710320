"""A guessing game: which of two neighbouring inputs was used? Guesses that are right too often refute the claim.

A fair coin chooses one of two inputs that differ in one reward, and the mechanism is run on that one only. A guesser,
trained beforehand on other runs, names one of the two or abstains. If the mechanism is epsilon-private, each guess is
right with probability at most e^epsilon / (1 + e^epsilon), for any guesser. So the number of right guesses gives a
lower bound on epsilon (Steinke, Nasr & Jagielski 2023; here for independent runs, where it is tight).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpbandits.checks import at_least, fraction, positive
from dpbandits.errors import InputError
from dpbandits.proportions import share_at_least, share_at_most
from dpbandits.types import Bools, Floats, Integers

__all__ = ["Guesser", "Score", "check_trials", "epsilon_at_least", "fewest_guesses", "sequential_bound", "train"]

BOTH, ONLY_ZERO, ONLY_ONE = 2, 0, 1
THRESHOLDS = 41  # thresholds for abstaining that are tried in training
EPSILON_STEP = 0.02  # steps of epsilon in the search for a sequential bound
HIGHEST = 12.0  # the largest epsilon of that search


def epsilon_at_least(right: int, wrong: int, trials: int, alpha: float, delta: float = 0.0) -> float:
    """The epsilon that is refuted at error ``alpha`` by ``right`` right and ``wrong`` wrong guesses; 0 if none is.

    With delta = 0 it is the logit of Clopper and Pearson's lower bound of the accuracy. Otherwise
    P(right) <= e^epsilon P(wrong) + delta, and each of the two is bounded at alpha / 2.

    >>> round(epsilon_at_least(750, 250, 1000, 0.05), 3), round(epsilon_at_least(750, 250, 1000, 0.05, delta=0.01), 3)
    (0.977, 0.94)
    """
    guesses = right + wrong
    if right == 0:
        return 0.0
    if delta == 0.0:
        return max(0.0, float(logit(share_at_least(right, guesses, alpha))))
    at_least("trials", trials, guesses)
    often = share_at_least(right, trials, 0.5 * alpha) - delta
    seldom = share_at_most(wrong, trials, 0.5 * alpha)
    return math.log(often / seldom) if often > seldom else 0.0


def sequential_bound(right: Bools, alpha: float) -> float:
    """The epsilon that is refuted at error ``alpha`` by guesses in order, valid however often it is computed.

    For each epsilon with q = e^epsilon / (1 + e^epsilon), a gambler bets on the next guess as if it were right with
    probability p, the larger of q and Krichevsky and Trofimov's estimate from the earlier guesses. If guesses are right
    with probability at most q, the gambler's wealth is a supermartingale, and the probability that it ever reaches
    1/alpha is at most alpha (Ville 1939). The bound is the largest epsilon of a grid that is refuted.

    >>> rights = np.random.default_rng(0).random(3000) < expit(1.3)
    >>> 1.0 < sequential_bound(rights, 0.01) < 1.3
    True
    """
    found = right.astype(np.float64)
    order = np.arange(found.size)
    estimate = (np.cumsum(found) - found + 0.5) / (order + 1.0)
    refuted = 0.0
    for epsilon in np.arange(0.0, HIGHEST, EPSILON_STEP):
        q = float(expit(epsilon))
        p = np.clip(estimate, q, 1.0 - 1e-12)
        wealth = np.cumsum(np.where(right, np.log(p / q), np.log((1.0 - p) / (1.0 - q))))
        if not wealth.size or wealth.max() < math.log(1.0 / alpha):
            break
        refuted = float(epsilon)
    return refuted


def fewest_guesses(claim: float, alpha: float, delta: float = 0.0) -> int:
    """The smallest number of guesses that refutes the claim if all of them are right.

    >>> fewest_guesses(1.0, 0.001), fewest_guesses(1.0, 0.001, delta=0.01)
    (23, 25)
    """
    high = 1
    while epsilon_at_least(high, 0, high, alpha, delta) <= claim:
        high *= 2
        if high > 1 << 60:
            raise InputError("claim", f"must be refutable at delta {delta:g}, got {claim:g}")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if epsilon_at_least(middle, 0, middle, alpha, delta) > claim else (middle, high)
    return high


def check_trials(trials: float, claim: float, alpha: float, delta: float = 0.0) -> int:
    """Return ``trials`` if they are enough to refute the claim; half of them are guesses."""
    fraction("alpha", alpha)
    least = 2 * fewest_guesses(positive("claim", claim), alpha, delta)
    if at_least("trials", trials, 1) < least:
        raise InputError(
            "trials", f"must be at least {least} to refute epsilon {claim:g} at alpha {alpha:g}, got {trials:g}"
        )
    return int(trials)


class Score(NamedTuple):
    """The evidence of each code in each column for side 1: its log likelihood ratio in training."""

    keys: list[Integers]
    weights: list[Floats]

    @classmethod
    def of(cls, codes: Integers, sides: Integers) -> Score:
        """Estimate from outcomes, given as rows of codes. Columns are treated as independent."""
        keys, weights = [], []
        for column in codes.T:
            known, which = np.unique(column, return_inverse=True)
            ones = np.bincount(which.ravel(), sides, len(known)) + 0.5
            zeros = np.bincount(which.ravel(), 1 - sides, len(known)) + 0.5
            keys.append(known)
            weights.append(np.log(ones / ones.sum()) - np.log(zeros / zeros.sum()))
        return cls(keys, weights)

    def __call__(self, codes: Integers) -> Floats:
        total = np.zeros(len(codes))
        for column, known, weight in zip(codes.T, self.keys, self.weights, strict=True):
            place = np.minimum(np.searchsorted(known, column), len(known) - 1)
            total += np.where(known[place] == column, weight[place], 0.0)
        return total


class Guesser(NamedTuple):
    """Guesses side 1 if the score is high and side 0 if it is low, and abstains in between."""

    score: Score
    threshold: float
    says: int
    trained_bound: float

    def guesses(self, codes: Integers) -> tuple[Bools, Bools]:
        """Which runs it guesses to be side 0, and which side 1."""
        return _says(self.score(codes), self.threshold, self.says)

    def outcome(self, codes: Integers, sides: Integers) -> tuple[Bools, Bools]:
        """Which guesses are right, and which are wrong."""
        zero, one = self.guesses(codes)
        truth = sides == 1
        return (zero & ~truth) | (one & truth), (zero & truth) | (one & ~truth)


def _says(score: Floats, threshold: float, says: int) -> tuple[Bools, Bools]:
    zero = score <= -threshold if says != ONLY_ONE else np.zeros(score.size, bool)
    one = score >= threshold if says != ONLY_ZERO else np.zeros(score.size, bool)
    return zero & (score < 0.0), one & (score > 0.0)


def train(codes: Integers, sides: Integers, alpha: float, delta: float = 0.0) -> Guesser:
    """Train a guesser: its scores on the first half of these runs, its threshold on the second half."""
    half = len(codes) // 2
    score = Score.of(codes[:half], sides[:half])
    rest, truth = score(codes[half:]), sides[half:] == 1
    best = Guesser(score, 0.0, BOTH, -1.0)
    for threshold in np.unique(np.quantile(np.abs(rest), np.linspace(0.0, 1.0, THRESHOLDS))):
        for says in (BOTH, ONLY_ZERO, ONLY_ONE):
            zero, one = _says(rest, float(threshold), says)
            right = int(np.sum(zero & ~truth) + np.sum(one & truth))
            wrong = int(np.sum(zero & truth) + np.sum(one & ~truth))
            bound = epsilon_at_least(right, wrong, len(rest), alpha, delta)
            if bound > best.trained_bound:
                best = Guesser(score, float(threshold), says, bound)
    return best


def hashed(rows: NDArray[Any]) -> Integers:
    """A hash code for each row. If two rows collide, the guesser treats them as one outcome, which is still valid."""
    factors: list[int] = np.random.default_rng(0).integers(1, 1 << 62, (rows.shape[1],)).tolist()
    codes = np.zeros(len(rows), np.int64)
    for column, factor in enumerate(factors):
        codes = (codes + rows[:, column].astype(np.int64) + 1) * (factor | 1)
    return codes
