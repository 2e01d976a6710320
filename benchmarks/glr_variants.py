"""What would change DP-GLR-IMED: the exact likelihood, noise on the integers, and an index with a theorem.

``python benchmarks/glr_variants.py docs/papers/strongest.md`` writes the table of that page, in about two minutes on
two cores. Each variant is a policy: ``dpbandits simulate glr_variants:exact ...`` plays it in this folder.

* ``exact``: the likelihood of a noisy sum is the convolution of the binomial distribution and of Laplace noise, in
  place of its saddle-point form n d_eps.
* ``integers``: two-sided geometric noise, P(j) ~ e^(-epsilon |j|), on the sum of rewards that are 0 or 1. It is as
  private as Laplace noise of scale 1/epsilon, with variance 2 e^-epsilon / (1 - e^-epsilon)^2 in place of 2 /
  epsilon^2.
* ``upper``: the version for which expected regret O(log T) is proved on the page, DP-GLR-UCB.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits import __version__, simulate
from dpbandits.agents import Geometric, LikelihoodIMED, LikelihoodUCB, batches
from dpbandits.curators import BatchLikelihood
from dpbandits.numerics import d_eps, unit
from dpbandits.policies.dp_likelihood import FOUR
from dpbandits.policies.first_batch import first_batch
from dpbandits.policies.policy import Parts, published
from dpbandits.simulation import Trace

HORIZON, SEED = 10**6, 12
CELLS = (
    ("C1", "@azize2022-c1", 1.0),
    ("C2", "@azize2022-c2", 0.1),
    ("C2", "@azize2022-c2", 4.0),
    ("0.5, 0.49", "0.5,0.49", 0.1),
    ("1, 0.99, 0.98", "1,0.99,0.98", 1.0),
)
FAST, SLOW = 4000, 1000  # runs: with the saddle-point form, and with the convolution or a search for each bound
VARIANTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "shipped, k = 1.5": ("dp-glr-imed", {}, FAST),
    "integers, k = 1.5": ("glr_variants:integers", {}, FAST),
    "exact, k = 1.5": ("glr_variants:exact", {}, SLOW),
    "exact, k = 0.5": ("glr_variants:exact", {"correction": 0.5}, SLOW),
    "exact, k = 0": ("glr_variants:exact", {"correction": 0.0}, SLOW),
    "shipped, k = 0": ("dp-glr-imed", {"correction": 0.0}, FAST),
    "upper": ("glr_variants:upper", {}, SLOW),
}
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
BEGIN, END = "<!-- variants: written by benchmarks/glr_variants.py -->", "<!-- end of variants -->"


def continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method; for x < (a + 1) / (a + b + 2)."""
    tiny = 1e-300
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    c, value = 1.0, d
    for m in range(1, 20_000):
        for even in (True, False):
            if even:
                step = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
            else:
                step = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
            d = 1.0 + step * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + step / c
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-12:
            break
    return value


def log_beta_share(x: float, a: float, b: float) -> float:
    """The logarithm of the regularised incomplete beta function I_x(a, b); it does not underflow."""
    if x <= 0.0:
        return -math.inf
    if x >= 1.0:
        return 0.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return front + math.log(continued_fraction(x, a, b) / a)
    return math.log1p(-min(math.exp(front) * continued_fraction(1.0 - x, b, a) / b, 1.0 - 1e-16))


def log_at_most(k: float, n: float, p: float) -> float:
    """log P(X <= k) for a binomial X."""
    if k < 0.0:
        return -math.inf
    return 0.0 if k >= n else log_beta_share(1.0 - p, n - k, k + 1.0)


def log_above(k: float, n: float, p: float) -> float:
    """log P(X > k) for a binomial X."""
    if k < 0.0:
        return 0.0
    return -math.inf if k >= n else log_beta_share(p, k + 1.0, n - k)


def log_likelihood(noisy: float, n: float, mean: float, epsilon: float) -> float:
    """log E[e^(-epsilon |noisy - X|)], X being binomial: the likelihood of a noisy sum, up to a constant.

    The sum over X <= noisy is that of a binomial distribution with the odds times e^epsilon, and the sum over X > noisy
    with the odds times e^-epsilon. So it has a closed form. With two-sided geometric noise it is the same, at integers.
    """
    up, down = 1.0 - mean + mean * math.exp(epsilon), 1.0 - mean + mean * math.exp(-epsilon)
    k = math.floor(noisy)
    below = n * math.log(up) - epsilon * noisy + log_at_most(k, n, mean * math.exp(epsilon) / up)
    above = n * math.log(down) + epsilon * noisy + log_above(k, n, mean * math.exp(-epsilon) / down)
    top = max(below, above)
    return top + math.log(math.exp(below - top) + math.exp(above - top))


class ExactLikelihood(BatchLikelihood):
    """``BatchLikelihood`` with the convolution; for rewards of 0 and 1 only."""

    __slots__ = ()

    def misfit(self, arm: int, mean: float) -> float:
        """Minus the log-likelihood, up to a constant."""
        total = 0.0
        for batch in range(self.entries(arm)):
            total -= log_likelihood(self.sums[arm, batch], self.sizes[arm, batch], mean, self.epsilon)
        return total

    def evidence(self, arm: int, mean: float, top: float) -> float:
        return self.misfit(arm, top) - self.misfit(arm, mean)

    def saddle(self, arm: int) -> float:
        """The mean by the saddle-point form."""
        low, high = 1e-9, 1.0 - 1e-9
        for _ in range(40):
            mean = 0.5 * (low + high)
            if self.score(arm, mean)[0] > 0.0:
                high = mean
            else:
                low = mean
        return 0.5 * (low + high)

    def mean(self, arm: int) -> float:
        """The most likely mean: golden section, around that of the saddle-point form."""
        middle = self.saddle(arm)
        width = 4.0 / math.sqrt(1.0 + self.score(arm, middle)[1])
        low, high = max(middle - width, 1e-9), min(middle + width, 1.0 - 1e-9)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = self.misfit(arm, left), self.misfit(arm, right)
        for _ in range(24):
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = self.misfit(arm, left)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = self.misfit(arm, right)
        return 0.5 * (low + high)

    def reaches(self, arm: int, mean: float) -> bool:
        return self.mean(arm) >= mean


def geometric(epsilon: float, rng: Any) -> float:
    """Noise on the integers with P(j) ~ e^(-epsilon |j|): the difference of two geometric variables."""
    return math.floor(rng.standard_exponential() / epsilon) - math.floor(rng.standard_exponential() / epsilon)


class OnIntegers(BatchLikelihood):
    """``BatchLikelihood`` with geometric noise; for rewards of 0 and 1 only."""

    __slots__ = ()

    def close(self, arm: int, rng: Any) -> None:
        place = self.batches[arm]
        self.sums[arm, place] = self.raw_sums[arm] + geometric(self.epsilon, rng)
        self.sizes[arm, place] = self.raw_counts[arm]
        self.batches[arm] += 1
        self.counts[arm] += self.raw_counts[arm]
        self.raw_counts[arm] = 0
        self.raw_sums[arm] = 0.0


def log_gamma_tail(shape: int, u: float) -> float:
    """log P(G > u) for a gamma variable of integer shape: log of the sum of e^-u u^i / i! over i < shape."""
    term, total = 1.0, 1.0
    for i in range(1, shape):
        term *= u / i
        total += term
    return math.log(total) - u


class UpperLikelihood(BatchLikelihood):
    """``BatchLikelihood`` with the upper confidence bound of the theorem."""

    __slots__ = ()

    def below(self, arm: int, mean: float) -> float:
        """The misfit of the batches that are too low for this mean."""
        total = 0.0
        for batch in range(self.entries(arm)):
            n = self.sizes[arm, batch]
            total += n * d_eps(min(self.sums[arm, batch] / n, mean), mean, self.epsilon)
        return total

    def threshold(self, arm: int, log_t: float) -> float:
        """The u with P(Gamma(2m) > u) = 1 / (t (1 + log t)^2 2^m), m being the number of batches."""
        m = self.batches[arm]
        level = -log_t - 2.0 * math.log1p(log_t) - m * math.log(2.0)
        low, high = 0.0, 10.0 * (4.0 * m - level)
        for _ in range(50):
            u = 0.5 * (low + high)
            if log_gamma_tail(2 * m, u) > level:
                low = u
            else:
                high = u
        return high

    def upper(self, arm: int, budget: float) -> float:
        limit = self.threshold(arm, budget)
        low, high = 0.0, 1.0
        for _ in range(40):
            mean = 0.5 * (low + high)
            if self.below(arm, mean) <= limit:
                low = mean
            else:
                high = mean
        return unit(high)


def _imed(curator: Any, arms: int, epsilon: float, ratio: float, correction: float) -> Parts:
    first = first_batch(FOUR, FOUR, 4.0 / epsilon)
    agent = Geometric.start(arms, LikelihoodIMED.start(arms, correction=correction), ratio=ratio, first=first)
    return Parts(agent, curator.start(arms, epsilon=epsilon, most=batches(ratio, first)))


@published("ours", cost="stint")
def exact(arms: int, *, epsilon: float, ratio: float = 1.5, correction: float = 1.5) -> Parts:
    """DP-GLR-IMED with the exact likelihood."""
    return _imed(ExactLikelihood, arms, epsilon, ratio, correction)


@published("ours", cost="stint")
def integers(arms: int, *, epsilon: float, ratio: float = 1.5, correction: float = 1.5) -> Parts:
    """DP-GLR-IMED with geometric noise."""
    return _imed(OnIntegers, arms, epsilon, ratio, correction)


@published("ours", cost="stint")
def upper(arms: int, *, epsilon: float, ratio: float = 1.5) -> Parts:
    """DP-GLR-UCB: an upper confidence bound from the likelihood of the batches that are too low."""
    first = first_batch(FOUR, FOUR, 4.0 / epsilon)
    agent = Geometric.start(arms, LikelihoodUCB.start(arms), ratio=ratio, first=first)
    return Parts(agent, UpperLikelihood.start(arms, epsilon=epsilon, most=batches(ratio, first)))


def play(arms: str, epsilon: float, name: str) -> Trace:
    """The runs of one variant on one problem."""
    policy, options, runs = VARIANTS[name]
    given: dict[str, Any] = {"epsilon": epsilon, "horizon": HORIZON, "runs": runs, "seed": SEED, "checkpoints": 1}
    return simulate(policy, arms=arms, options=options, **given)


def shown(trace: Trace) -> str:
    """Mean with its standard error; the 99.9 % quantile, the largest, and the disasters in 10,000 runs."""
    regret = trace.final_regret
    locked = 10_000 * float((regret > 10.0 * np.median(regret)).mean())
    high = float(np.quantile(regret, 0.999))
    return f"{regret.mean():.4g} ± {trace.stderr[-1]:.2g} ({high:,.0f}; {regret.max():,.0f}; {locked:.3g})"


def table() -> str:
    """Every variant on every cell."""
    names = ["arms, epsilon", *VARIANTS]
    rows = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for label, arms, epsilon in CELLS:
        row = [f"{label}; {epsilon:g}"]
        for name in VARIANTS:
            row.append(shown(play(arms, epsilon, name)))
            print(row[0], name, row[-1], file=sys.stderr, flush=True)
        rows.append("| " + " | ".join(row) + " |")
    settings = f"{HORIZON:,} rounds, seed {SEED}, {FAST:,} runs ({SLOW:,} of `exact` and `upper`)"
    return f"Version {__version__}, {settings}:\n\n" + "\n".join(rows)


def main() -> None:
    written = f"{BEGIN}\n{table()}\n{END}"
    if len(sys.argv) < 2:
        print(written)
        return
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text:
        raise SystemExit(f"{page} has no line {BEGIN}")
    page.write_text(
        re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: written, text, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
