"""Bounds on the limit of regret / log T: their rates computed here with many digits, their limits, and refusals."""

from __future__ import annotations

import math

import mpmath
import pytest
from bound_cases import C2, FIG_3, LOG, value

import dpbandits as dp
from dpbandits.bounds import Problem, RewardLaw, Theorem, central, framework, local, long_run
from dpbandits.errors import InputError
from dpbandits.mechanisms.gaussian import zcdp_at

BATCHED = {
    "dp-klucb": (long_run.dp_klucb, 2.0),
    "dp-imed": (long_run.dp_imed, 2.0),
    "dp-glr-imed": (long_run.dp_glr_imed, 1.5),
}
ON_BITS = (long_run.ldp_klucb_b, long_run.ldp_imed_b, long_run.ldp_ts_b)


def divergence(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    terms = ((x, y), (1 - x, 1 - y))
    return mpmath.fsum(a * mpmath.log(a / b) for a, b in terms if a > 0)


def private_divergence(x: float, y: float, epsilon: float) -> mpmath.mpf:
    """inf over z of epsilon |z - x| + kl(z, y) by golden section, since it is convex in z."""
    with mpmath.workdps(40):
        x, y, epsilon = mpmath.mpf(x), mpmath.mpf(y), mpmath.mpf(epsilon)
        low, high, golden = x, y, (mpmath.sqrt(5) - 1) / 2
        for _ in range(160):
            one, two = high - golden * (high - low), low + golden * (high - low)
            cost = [epsilon * (z - x) + divergence(z, y) for z in (one, two)]
            low, high = (low, two) if cost[0] < cost[1] else (one, high)
        return epsilon * (low - x) + divergence(low, y)


@pytest.mark.parametrize("means", [C2, FIG_3, [0.036, 0.03, 0.03], [0.999, 0.2]])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
def test_rates_on_batches(means: list[float], epsilon: float) -> None:
    best = max(means)
    by_hand = mpmath.fsum((best - m) / private_divergence(m, best, epsilon) for m in means if m < best)
    problem = Problem.bernoulli(means, 10**6, epsilon=epsilon)
    for of, ratio in BATCHED.values():
        bound = of(problem)
        assert bound.rate == pytest.approx(float(ratio * by_hand), rel=1e-9)
        assert value(bound) == pytest.approx(float(ratio * by_hand) * LOG, rel=1e-9)
        assert of(problem, ratio=1.25).rate == pytest.approx(float(1.25 * by_hand), rel=1e-9)


@pytest.mark.parametrize("means", [C2, FIG_3, [0.036, 0.03, 0.03], [1.0, 0.2]])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
def test_rates_on_bits(means: list[float], epsilon: float) -> None:
    with mpmath.workdps(40):
        keeps = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        bits = [keeps * mpmath.mpf(m) + (1 - keeps) * (1 - mpmath.mpf(m)) for m in means]
        by_hand = mpmath.fsum(
            (max(means) - m) / divergence(bit, max(bits)) for m, bit in zip(means, bits, strict=True) if m < max(means)
        )
    for law in (Problem.bernoulli(means, 10**6, epsilon=epsilon), spread(means, epsilon)):
        for of in ON_BITS:
            assert of(law).rate == pytest.approx(float(by_hand), rel=1e-6)


@pytest.mark.parametrize(("means", "sd"), [([0.9, 0.6], 1.0), ([2.2, 0.4], 0.5), ([0.3, 0.2, -4.0], 3.0)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_rates_on_bits_of_normal_rewards(means: list[float], sd: float, epsilon: float) -> None:
    with mpmath.workdps(30):

        def logistic(mean: float) -> mpmath.mpf:
            width = 12 * sd
            return mpmath.quad(
                lambda x: mpmath.npdf(x, mean, sd) / (1 + mpmath.exp(-x)),
                mpmath.linspace(mean - width, mean + width, 13),
            )

        keeps = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        bits = [keeps * p + (1 - keeps) * (1 - p) for p in map(logistic, means)]
        by_hand = mpmath.fsum(
            (max(means) - m) / divergence(bit, max(bits)) for m, bit in zip(means, bits, strict=True) if m < max(means)
        )
    problem = Problem.gaussian(means, 10**6, sd=sd, epsilon=epsilon)
    for of in (long_run.ldp_bits_of_normal, long_run.ldp_ts_bs):
        assert of(problem).rate == pytest.approx(float(by_hand), rel=1e-6)
        assert of(problem).name not in {one.name for one in dp.bounds([0.9, 0.6], horizon=10, epsilon=1.0).upper()}


def test_the_limits_on_bits_of_normal_rewards_ask_for_normal_rewards() -> None:
    for of in (long_run.ldp_bits_of_normal, long_run.ldp_ts_bs):
        assert of(Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)).holds.startswith("does not apply")
        assert "one epsilon" in of(Problem.gaussian([0.9, 0.6], 1000)).holds
    assert "one best arm" in long_run.ldp_ts_bs(Problem.gaussian([0.9, 0.9], 1000, epsilon=1.0)).holds


def spread(means: list[float], epsilon: float) -> Problem:
    """Rewards other than 0 and 1 with the same means: their bits are the same."""
    return Problem.bounded([RewardLaw.of([m, m]) for m in means], 10**6, epsilon=epsilon)


def test_limits() -> None:
    """Without privacy both are Lai & Robbins, up to the ratio; with much of it, epsilon alone decides."""
    free, tiny = (Problem.bernoulli([0.9, 0.6], 10**6, epsilon=epsilon) for epsilon in (60.0, 1e-4))
    without = central.lai_robbins(free).rate
    assert without is not None
    for of, ratio in BATCHED.values():
        assert of(free).rate == pytest.approx(ratio * without)
        assert of(tiny).rate == pytest.approx(ratio / 1e-4, rel=1e-3)
    for on_bits in ON_BITS:
        assert on_bits(free).rate == pytest.approx(without)
        assert on_bits(tiny).rate == pytest.approx(2 / (0.3 * 1e-8), rel=1e-3)
        assert on_bits(tiny).rate == local.ldp_lower_randomised_response(tiny).rate
    certain = Problem.bernoulli([1.0, 0.5], 10**6, epsilon=2.0)
    assert long_run.dp_klucb(certain).rate == pytest.approx(2 * 0.5 / (2.0 * 0.5))
    assert long_run.dp_klucb(Problem.bernoulli([0.5, 0.5], 10**6, epsilon=2.0)).rate == 0.0


def test_an_upper_rate_is_not_cut_at_what_random_play_loses() -> None:
    """A policy that is optimal in the long run may lose more than random play at first."""
    tiny = Problem.bernoulli([0.9, 0.6], 100, epsilon=1e-3)
    assert value(central.dp_lower_bernoulli(tiny)) == tiny.at_random
    assert value(long_run.dp_klucb(tiny)) > tiny.at_random


def test_they_are_no_bounds_at_a_horizon() -> None:
    found = dp.bounds([0.9, 0.6], horizon=10**6, epsilon=1.0)
    limits = {one.name for one in found if one.kind == "upper" and one.rate is not None}
    assert limits == {*BATCHED, "ldp-klucb-b", "ldp-imed-b", "ldp-ts-b"}
    assert limits.isdisjoint(one.name for one in found.upper())
    assert all("not a bound at a finite horizon" in found[name].holds for name in limits)


@pytest.mark.parametrize("of", [one for one, _ in BATCHED.values()])
def test_refused(of: Theorem[Problem, ...]) -> None:
    problem = Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)
    assert of(problem, ratio=1.0).holds == "does not apply: ratio must be above 1, and is 1"
    assert "rewards must lie in [0, 1]" in of(Problem.gaussian([0.9, 0.6], 1000, epsilon=1.0)).holds
    assert "one epsilon" in of(Problem.bernoulli([0.9, 0.6], 1000)).holds


@pytest.mark.parametrize("of", ON_BITS)
def test_refused_on_bits(of: Theorem[Problem, ...]) -> None:
    assert "rewards must lie in [0, 1]" in of(Problem.gaussian([0.9, 0.6], 1000, epsilon=1.0)).holds
    assert "one epsilon" in of(Problem.bernoulli([0.9, 0.6], 1000)).holds


def test_a_limit_is_drawn_as_one() -> None:
    trace = dp.simulate("dp-klucb", arms="0.9,0.6", epsilon=1.0, horizon=1000, runs=2)
    labels = [line.get_label() for line in trace.plot(bounds=True).get_lines()]
    assert "at most, as t grows: dp-klucb" in labels
    assert not any(str(label).startswith("at most:") for label in labels)


@pytest.mark.parametrize("rho", [None, 0.001])
def test_adac_ucb(rho: float | None) -> None:
    """The least n with 8 V alpha log T = gap^2, found by bisection, times four; and the print is no smaller."""
    problem = Problem.bernoulli(C2, 10**6, epsilon=0.5)
    given = {} if rho is None else {"rho": rho}
    used = zcdp_at(0.5, math.exp(-10)) if rho is None else rho
    total, printed = 0.0, 0.0
    for gap in problem.gaps:
        with mpmath.workdps(30):
            n = mpmath.findroot(
                lambda n, gap=gap: 8 * (1 / (4 * n) + 1 / (2 * used * n * n)) * 3.1 * LOG - gap**2,
                (1.0, 1e9),
                solver="anderson",
            )
        total += gap * (4 * float(n) + 1 + 31.0)
        printed += 8 * 3.1 / gap * LOG + 8 * math.sqrt(3.1 * LOG / used) + 93.0
    bound = framework.adac_ucb(problem, **given)
    assert value(bound) == pytest.approx(total, rel=1e-9)
    assert value(bound) < printed


def test_adac_ucb_refuses() -> None:
    problem = Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)
    assert "alpha must be above 3, and is 3" in framework.adac_ucb(problem, alpha=3.0).holds
    with pytest.raises(InputError, match="rho must be at most"):
        framework.adac_ucb(problem, rho=5.0)
    nearly = framework.adac_ucb(Problem.bernoulli([0.9, 0.6], 10**6, epsilon=1e4))
    assert value(nearly) == pytest.approx(8 * 3.1 / 0.3 * LOG + 0.3 * 32, rel=1e-3)


def test_the_limit_of_the_likelihood_is_claimed_where_its_estimates_can_be() -> None:
    for means in ([1.0, 0.5], [0.5, 0.0]):
        found = long_run.dp_glr_imed(Problem.bernoulli(means, 1000, epsilon=1.0))
        assert found.rate is None
        assert "means must lie in [1e-9, 1 - 1e-9]" in found.holds
        assert long_run.dp_klucb(Problem.bernoulli(means, 1000, epsilon=1.0)).rate is not None
