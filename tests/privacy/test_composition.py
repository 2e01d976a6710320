"""Composition and accounting, against enumeration, closed forms, published numbers and Google's dp-accounting."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from dp_accounting.pld import accountant, common
from dp_accounting.pld import privacy_loss_distribution as pld

from dpbandits.errors import InputError
from dpbandits.privacy import composition, renyi
from dpbandits.privacy.interval_accounting import (
    corollary_3_1,
    exact_interval,
    interval_cost,
    release_counts,
    schedule_cost,
    theorem_3_4,
)
from dpbandits.privacy.release_points import interval_rate

DELTA = math.exp(-10)
ZETA = 10.5844484649508  # of 1.1


def enumerated_delta(epsilons: list[float], total: float) -> float:
    """Every outcome of the randomised responses."""
    delta = 0.0
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        loss = math.fsum(sign * e for sign, e in zip(signs, epsilons, strict=True))
        mass = math.prod(1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, epsilons, strict=True))
        delta += mass * max(0.0, 1 - math.exp(total - loss))
    return delta


# --- sums and groups -------------------------------------------------------------------------------------------------


def test_pure_sums_are_exact() -> None:
    assert composition.pure([0.1] * 10) == 1
    assert sum([0.1] * 10) != 1.0  # which is why
    assert composition.pure(["1/3", "1/3", Fraction(1, 3)]) == 1
    assert composition.pure([]) == 0


@pytest.mark.parametrize("wrong", [-0.1, "a", math.nan, math.inf])
def test_pure_refuses_what_is_no_epsilon(wrong: float | str) -> None:
    with pytest.raises(InputError, match="epsilon must"):
        composition.pure([wrong])


def test_group_privacy_by_induction() -> None:
    epsilon, delta = 0.3, 1e-6
    together = 0.0
    for size in range(1, 6):
        together = math.exp(epsilon) * together + delta  # one more reward: P <= e^eps P' + delta
        assert composition.group(epsilon, delta, size) == pytest.approx((size * epsilon, together), rel=1e-12)
    assert composition.group(5.0, 0.5, 1000)[1] == 1.0
    assert composition.group(0.5, 0.0, 4) == (2.0, 0.0)


# --- homogeneous -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [0.0, 0.31, 0.9, 1.7])
def test_optimal_delta_by_enumeration(total: float) -> None:
    assert composition.optimal_delta(0.3, 6, total) == pytest.approx(enumerated_delta([0.3] * 6, total), rel=1e-12)


def test_optimal_against_dp_accounting() -> None:
    each = common.DifferentialPrivacyParameters(0.1, 1e-9)
    for count in (10, 100):
        theirs = accountant.advanced_composition(each, count, 1e-6)
        assert composition.optimal(0.1, count, 1e-6, delta_each=1e-9) <= theirs + 1e-9
        # theirs is the best of the multiples of epsilon that the theorem lists, ours of all totals
        assert composition.optimal(0.1, count, 1e-6, delta_each=1e-9) == pytest.approx(theirs, abs=0.2)


def test_optimal_against_dp_accountings_losses() -> None:
    step = 1e-4
    one = pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.1, 0.0), value_discretization_interval=step
    )
    for count in (10, 100):
        theirs = one.self_compose(count).get_epsilon_for_delta(1e-6)
        assert composition.optimal(0.1, count, 1e-6) == pytest.approx(theirs, abs=count * step)


def test_optimal_published_numbers() -> None:
    assert [round(composition.optimal(0.1, k, 1e-6), 6) for k in (10, 100, 1000)] == [0.999371, 4.774568, 19.344671]


def test_optimal_keeps_the_mechanisms_own_deltas() -> None:
    assert composition.optimal_delta(0.5, 3, 1.5, delta_each=0.01) == pytest.approx(1 - 0.99**3, rel=1e-12)
    with pytest.raises(InputError, match=r"delta must be at least 0\.029701"):
        composition.optimal(0.5, 3, 0.01, delta_each=0.01)


def test_optimal_limits() -> None:
    assert composition.optimal(0.7, 4, 0.0) == pytest.approx(2.8)
    assert composition.optimal(1e-4, 3, 0.5) == 0.0
    assert composition.optimal(300.0, 2, 1e-6) == pytest.approx(600.0, abs=1e-3)


# --- heterogeneous ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilons",
    [[0.5], [0.3, 0.7], [0.11, 0.23, 0.37, 0.05, 0.4], [1.0, 2.0, 3.0], [0.01 * i for i in range(1, 13)]],
)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_heterogeneous_is_above_enumeration_and_near_it(epsilons: list[float], share: float) -> None:
    total = share * sum(epsilons)
    exact = enumerated_delta(epsilons, total)
    ours = composition.heterogeneous_delta(epsilons, total)
    assert exact * (1 - 1e-12) <= ours <= exact * 1.002


def test_heterogeneous_epsilon_is_valid() -> None:
    epsilons = [0.11, 0.23, 0.37, 0.05, 0.4, 0.31, 0.17]
    for delta in (0.2, 1e-2, 1e-4):
        epsilon = composition.heterogeneous(epsilons, delta)
        assert enumerated_delta(epsilons, epsilon) <= delta
        assert enumerated_delta(epsilons, epsilon - 2e-3) > delta


@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12, 1e-25])
def test_heterogeneous_of_equals_is_optimal(delta: float) -> None:
    for count in (30, 300, 3000):
        exact = composition.optimal(0.05, count, delta)
        ours = composition.heterogeneous([0.05] * count, delta)
        assert exact * (1 - 1e-9) <= ours <= exact * 1.0005


def test_heterogeneous_against_dp_accountings_losses() -> None:
    epsilons = [0.02 * i for i in range(1, 31)]
    whole = pld.identity(value_discretization_interval=1e-4)
    for e in epsilons:
        whole = whole.compose(
            pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(e, 0.0), value_discretization_interval=1e-4
            )
        )
    assert composition.heterogeneous(epsilons, 1e-6) == pytest.approx(whole.get_epsilon_for_delta(1e-6), rel=1e-3)


def test_heterogeneous_counts_and_own_deltas() -> None:
    several = composition.heterogeneous_delta([0.1, 0.2], 1.0, counts=[20, 5])
    assert several == pytest.approx(composition.heterogeneous_delta([0.1] * 20 + [0.2] * 5, 1.0), rel=1e-9)
    own = composition.heterogeneous_delta([0.1, 0.2], 0.3, deltas=[0.01, 0.02])
    assert own == pytest.approx(1 - 0.99 * 0.98, rel=1e-9)


def test_heterogeneous_refuses() -> None:
    with pytest.raises(InputError, match="total must not be negative, got -1"):
        composition.heterogeneous_delta([0.1], -1)
    with pytest.raises(InputError, match="epsilons must be positive and finite, got 0"):
        composition.heterogeneous([0.1, 0.0], 1e-6)
    with pytest.raises(InputError, match="counts must be one whole number"):
        composition.heterogeneous([0.1, 0.2], 1e-6, counts=[1])
    with pytest.raises(InputError, match=r"delta must be at least 0\.01"):
        composition.heterogeneous([0.1], 1e-6, deltas=[0.01])


def test_every_composition_in_order() -> None:
    epsilons = [0.01 + 0.001 * i for i in range(100)]
    optimal = composition.heterogeneous(epsilons, 1e-6)
    assert optimal < composition.advanced(epsilons, 1e-6) < sum(epsilons)
    assert composition.heterogeneous(epsilons, 0.0) == pytest.approx(sum(epsilons))


def test_advanced_by_hand() -> None:
    by_hand = 0.1 * (math.exp(0.1) - 1) + 0.2 * (math.exp(0.2) - 1) + math.sqrt(2 * math.log(100) * (0.01 + 0.04))
    assert composition.advanced([0.1, 0.2], 0.01) == pytest.approx(by_hand, rel=1e-12)


# --- Rényi -----------------------------------------------------------------------------------------------------------


def test_laplace_rdp_by_integration() -> None:
    scale, order = 1 / 0.7, 3.5
    x = np.linspace(-60, 60, 2_000_001)
    p, q = (np.exp(-np.abs(x - m) / scale) / (2 * scale) for m in (0.0, 1.0))
    integral = float(np.trapezoid(p**order * q ** (1 - order), x))
    assert float(renyi.laplace_rdp(0.7, order)) == pytest.approx(math.log(integral) / (order - 1), rel=1e-6)


def test_laplace_rdp_limits() -> None:
    assert float(renyi.laplace_rdp(0.5, 1e9)) == pytest.approx(0.5, rel=1e-6)
    assert float(renyi.laplace_rdp(0.5, 1 + 1e-9)) == pytest.approx(0.5 + math.exp(-0.5) - 1, rel=1e-5)  # KL
    assert float(renyi.laplace_rdp(1e-4, 2.0)) == pytest.approx(1e-8, rel=1e-3)  # order e^2 / 2


def test_rdp_against_dp_accounting() -> None:
    laplace = rdp.RdpAccountant()
    laplace.compose(dp_event.LaplaceDpEvent(1 / 0.1), 100)
    ours = renyi.rdp_to_dp(lambda order: 100 * float(renyi.laplace_rdp(0.1, order)), 1e-6)
    assert laplace.get_epsilon(1e-6) * 0.995 <= ours <= laplace.get_epsilon(1e-6) + 1e-9  # they try fewer orders
    gauss = rdp.RdpAccountant()
    gauss.compose(dp_event.GaussianDpEvent(3.0), 1)
    rho = 1 / (2 * 9.0)
    assert renyi.zcdp_to_dp(rho, 1e-6) == pytest.approx(gauss.get_epsilon(1e-6), rel=5e-3)


def test_gaussian_against_dp_accounting() -> None:
    theirs = pld.from_gaussian_mechanism(3.0, value_discretization_interval=1e-4).get_epsilon_for_delta(1e-6)
    assert renyi.gaussian_epsilon(1 / 18, 1e-6) == pytest.approx(theirs, abs=3e-4)
    assert renyi.gaussian_epsilon(1 / 18, 1e-6) < renyi.zcdp_to_dp(1 / 18, 1e-6)
    assert renyi.gaussian_rdp(1 / 18, 9.0) == pytest.approx(0.5)


def test_pure_to_zcdp_is_the_worst_order() -> None:
    epsilon = 1.3
    p = 1 / (1 + math.exp(-epsilon))
    orders = 1 + np.geomspace(1e-3, 100, 400)
    divergence = np.log(p**orders * (1 - p) ** (1 - orders) + (1 - p) ** orders * p ** (1 - orders)) / (orders - 1)
    worst = float(np.max(divergence / orders))
    assert worst <= renyi.pure_to_zcdp(epsilon) <= worst * 1.001
    assert renyi.pure_to_zcdp(epsilon) < epsilon**2 / 2


# --- DP-UCB-INT ------------------------------------------------------------------------------------------------------


def test_theorem_3_4_term_by_term() -> None:
    rate, t = 0.004, 3000
    n = np.arange(1.0, t + 1)
    e = n**-0.55
    pure = rate * float(e.sum())
    spread = math.sqrt(rate * 2 * 10 * float((e * e).sum()))
    corrected = rate * float((e * np.expm1(e)).sum()) + spread
    printed = rate * float(np.expm1(e).sum()) / t**0.55 + spread
    assert theorem_3_4(rate, 1.1, t, DELTA) == pytest.approx((pure, corrected), rel=1e-9)
    assert theorem_3_4(rate, 1.1, t, DELTA, as_printed=True) == pytest.approx((pure, printed), rel=1e-9)
    assert printed < corrected


def test_corollaries() -> None:
    rate = interval_rate(1.0, DELTA, 1.1)
    assert rate == pytest.approx(0.0039643, rel=1e-4)
    pure, approximate = corollary_3_1(rate, 1.1, 10**5, DELTA)
    assert approximate == pytest.approx(1.0, abs=1e-9)  # Corollary 3.2 inverts it
    assert approximate == pytest.approx(2 * rate * ZETA + math.sqrt(2 * rate * ZETA * 10), rel=1e-9)
    assert pure == pytest.approx(rate * (1e5**0.45 - 0.55) / 0.45, rel=1e-12)
    tight = theorem_3_4(rate, 1.1, 10**5, DELTA)
    assert tight[0] < pure
    assert tight[1] < approximate


@pytest.mark.parametrize(
    ("epsilon", "schedule", "firsts", "pure", "advanced", "renyi_most"),
    [
        (1.0, "constant", [253, 253], 1.48, 0.49, 0.34),
        (1.0, "x", [124, 200, 221, 231], 1.56, 0.58, 0.39),
        (1.0, "y", [46, 131, 177, 200], 1.68, 0.80, 0.48),
        (0.1, "constant", [21591, 21591], 0.011, 0.026, 0.022),
        (0.1, "x", [9834, 16943], 0.017, 0.038, 0.025),
        (0.1, "y", [1751, 9063, 14052], 0.035, 0.083, 0.038),
    ],
)
def test_schedules_of_the_paper(
    epsilon: float, schedule: str, firsts: list[int], pure: float, advanced: float, renyi_most: float
) -> None:
    rate = interval_rate(epsilon, DELTA, 1.1)
    counts = release_counts(rate, 1.1, 10**5, schedule)
    assert np.diff([0, *counts])[: len(firsts)].tolist() == firsts
    cost = schedule_cost(rate, 1.1, 10**5, DELTA, schedule)
    digits = 2 if epsilon == 1.0 else 3
    assert round(cost.pure, digits) == pure
    assert round(cost.advanced, digits) == advanced
    assert round(cost.renyi, digits) <= renyi_most
    if epsilon == 1.0:
        assert round(cost.renyi, 2) == renyi_most
    assert cost.epsilon <= epsilon  # far below: what the exact schedule uses


@pytest.mark.parametrize(("epsilon", "theirs"), [(1.0, 253), (0.1, 21591)])
@pytest.mark.parametrize("horizon", [10**5, 10**7])
def test_exact_interval_beats_corollary_3_2(epsilon: float, theirs: int, horizon: int) -> None:
    ours = exact_interval(epsilon, DELTA, 1.1, horizon)
    assert ours < theirs / 4
    assert interval_cost(ours, 1.1, horizon, DELTA).epsilon <= epsilon * (1 + 1e-6)
    assert interval_cost(ours - 1, 1.1, horizon, DELTA).epsilon > epsilon


def test_blocks_of_releases_round_up_and_hardly() -> None:
    e = np.arange(20, 10**5 + 1, 20, dtype=np.float64) ** -0.55
    cost = interval_cost(20, 1.1, 10**5, DELTA)
    one_by_one = (
        float(e.sum()),
        composition.advanced(e, DELTA),
        composition.heterogeneous(e, DELTA),
        renyi.rdp_to_dp(lambda order: float(np.sum(renyi.laplace_rdp(e, order))), DELTA),
    )
    for blocks, exact in zip(cost, one_by_one, strict=True):
        assert exact * (1 - 1e-4) <= blocks <= exact * 1.001


@pytest.mark.parametrize(
    ("epsilon", "intervals"), [(1.0, {10**5: 44, 10**6: 51, 10**7: 56}), (0.1, {10**5: 1307, 10**6: 1706, 10**7: 2030})]
)
def test_exact_intervals_of_the_documentation(epsilon: float, intervals: dict[int, int]) -> None:
    for horizon, interval in intervals.items():
        assert exact_interval(epsilon, DELTA, 1.1, horizon) == pytest.approx(interval, rel=1e-3)


def test_exact_interval_against_every_interval() -> None:
    """On a short horizon each interval is accounted anew, release by release."""
    horizon, epsilon, delta = 400, 0.9, 1e-3
    meets = []
    for interval in range(1, 40):
        e = np.arange(interval, horizon + 1, interval, dtype=np.float64) ** -0.55
        by_order = [
            float(np.sum(renyi.laplace_rdp(e, a))) + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
            for a in 1 + np.geomspace(0.1, 300, 1000)
        ]
        meets.append(min(float(e.sum()), composition.heterogeneous(e, delta), *by_order) <= epsilon)
    assert exact_interval(epsilon, delta, 1.1, horizon) == 1 + meets.index(True)


def test_exact_interval_at_delta_zero_is_the_pure_sum() -> None:
    ours = exact_interval(0.5, 0.0, 1.1, 1000)
    sums = [float(np.sum(np.arange(f, 1001, f, dtype=np.float64) ** -0.55)) for f in (ours - 1, ours)]
    assert sums[1] <= 0.5 < sums[0]


def test_exact_interval_refuses_the_impossible() -> None:
    with pytest.raises(InputError, match="epsilon must be at least"):
        exact_interval(0.001, DELTA, 1.1, 1000)
    with pytest.raises(InputError, match=r"v must be in \(1, 1\.5\], got 2"):
        exact_interval(1.0, DELTA, 2, 1000)
