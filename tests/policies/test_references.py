"""Regret against the reference values of an independent step-by-step simulation, within Monte-Carlo error.

The references are means over 100 runs (30 for the last group), printed without their errors; each is compared at 5
standard errors of the difference, taking the reference's own error from our runs' spread, plus 1 % for its rounding
and the arms' order. One comparison fails by chance with probability below 1e-6.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.exact.wire import encode

C = ("@azize2022-c1", "@azize2022-c2", "@azize2022-c3", "@azize2022-c4")
EPSILONS = (0.1, 0.25, 0.5, 1.0)
AZIZE = {
    "adap-ucb": (
        (13107, 8765, 6734, 6414),
        (7731, 4344, 3021, 2181),
        (7327, 3766, 2636, 1742),
        (10517, 6661, 4371, 3942),
    ),
    "adap-klucb": (
        (13107, 6832, 6423, 5374),
        (7711, 3919, 2829, 1905),
        (7296, 3666, 2498, 1573),
        (10455, 5371, 4134, 3347),
    ),
    "dp-se": (
        (11796, 11691, 11691, 11668),
        (5872, 4469, 4469, 4339),
        (6825, 3964, 3964, 3964),
        (11450, 10263, 9502, 9145),
    ),
}
PRINTED = {"as_printed": True}
TOSSOU: list[tuple[str, float, str, dict[str, Any], float]] = [
    ("@tossou2016-two", 1, "dp-ucb-bound", {}, 614),
    ("@tossou2016-two", 1, "dp-ucb-bound", PRINTED, 307),
    ("@tossou2016-two", 1, "dp-ucb", {}, 533),
    ("@tossou2016-two", 1, "dp-ucb", PRINTED, 326),
    ("@tossou2016-two", 1, "dp-ucb-int", {"schedule": "constant"}, 132),
    ("@tossou2016-two", 1, "dp-ucb-int", {"schedule": "x"}, 111),
    ("@tossou2016-two", 1, "dp-ucb-int", {"schedule": "y"}, 98),
    ("@tossou2016-two", 1, "private-ucb", {"gamma": "t^-4"}, 9158),
    ("@tossou2016-two", 1, "private-ucb", {"gamma": "t^-4", "split_over_arms": False}, 6187),
    ("@tossou2016-two", 0.1, "dp-ucb-bound", {}, 4588),
    ("@tossou2016-two", 0.1, "dp-ucb-int", {"schedule": "y"}, 525),
    ("@tossou2016-ten", 1, "dp-ucb-bound", {}, 4391),
    ("@tossou2016-ten", 1, "dp-ucb-bound", PRINTED, 2831),
    ("@tossou2016-ten", 1, "dp-ucb-int", {"schedule": "constant"}, 1157),
    ("@tossou2016-ten", 0.1, "dp-ucb-int", {"schedule": "constant"}, 39500),
    ("@tossou2016-ten", 0.1, "dp-ucb-int", {"schedule": "x"}, 38844),
    ("@tossou2016-ten", 0.1, "dp-ucb-int", {"schedule": "y"}, 6916),
    ("@tossou2016-ten", 0.1, "private-ucb", {"gamma": "t^-4"}, 39482),
]


def agrees(trace: dp.Trace, reference: float, reference_runs: int) -> bool:
    spread = trace.final_regret.std(ddof=1)
    error = spread * np.sqrt(1 / trace.runs + 1 / reference_runs)
    return bool(abs(trace.final_regret.mean() - reference) <= 5 * error + 0.01 * reference)


@pytest.mark.parametrize("policy", AZIZE)
@pytest.mark.parametrize("problem", range(4))
def test_azize_and_basu_2022_figures_4_to_7(policy: str, problem: int) -> None:
    for epsilon, reference in zip(EPSILONS, AZIZE[policy][problem], strict=True):
        trace = dp.simulate(policy, arms=C[problem], epsilon=epsilon, horizon=10**7, runs=100, seed=1)
        assert agrees(trace, reference, 100), (epsilon, trace.final_regret.mean(), reference)


def test_azize_and_basu_2022_figure_3() -> None:
    references = {0.05: 11469, 0.1: 5734, 0.2: 3082, 0.3: 2867, 1: 1434, 2: 717, 5: 654}
    for epsilon, reference in references.items():
        trace = dp.simulate("adap-klucb", arms="@azize2022-fig3", epsilon=epsilon, horizon=10**7, runs=100, seed=1)
        assert agrees(trace, reference, 100), (epsilon, trace.final_regret.mean(), reference)


def test_adap_pulls_are_powers_of_two() -> None:
    trace = dp.simulate("adap-klucb", arms=C[1], epsilon=1, horizon=10**7, runs=20, seed=0)
    best = trace.means.argmax()
    others = np.delete(trace.pulls[:, -1], best, axis=1)
    assert all(int(n) & (int(n) - 1) == 0 for n in others.ravel())


@pytest.mark.parametrize(("arms", "epsilon", "policy", "options", "reference"), TOSSOU)
def test_tossou_and_dimitrakakis_2016_figure_2(
    arms: str, epsilon: float, policy: str, options: dict[str, Any], reference: float
) -> None:
    trace = dp.simulate(policy, arms=arms, epsilon=epsilon, horizon=10**5, runs=40, seed=1, options=options)
    assert agrees(trace, reference, 30), (trace.final_regret.mean(), reference)


@pytest.mark.parametrize(
    ("arms", "epsilon", "policy", "ratio"),
    [
        ("@ren2020-bernoulli", 2, "ldp-ucb-b", 1.67),
        ("@ren2020-bernoulli", 2, "ldp-ucb-l", 7.9),
        ("@ren2020-mixed", 2, "ldp-ucb-b", 1.72),
        ("@ren2020-mixed", 0.2, "ldp-ucb-b", 43),
        ("@ren2020-mixed", 0.2, "ldp-ucb-l", 66),
        ("@ren2020-gaussian", 0.5, "ldp-ucb-bs", 3.3),
        ("@ren2020-gaussian", 0.5, "ldp-ucb-ls", 3.9),
    ],
)
def test_ren_2020_ratios_to_ucb1_at_a_million_rounds(arms: str, epsilon: float, policy: str, ratio: float) -> None:
    """The references have two figures and few runs of their own: 5 % is allowed for that, beside 5 standard errors."""
    base = dp.simulate("ucb1", arms=arms, horizon=10**6, runs=10, seed=1, options={"sigmoid": "gaussian" in arms})
    ours = dp.simulate(policy, arms=arms, epsilon=epsilon, horizon=10**6, runs=10, seed=1)
    value = ours.final_regret.mean() / base.final_regret.mean()
    relative = np.hypot(*(t.stderr[-1] / t.final_regret.mean() for t in (ours, base)))
    assert abs(value - ratio) <= (5 * relative + 0.05) * ratio


def test_heldp_regrets_at_two_million_rounds() -> None:
    """References from 2 runs: compared at 5 standard errors of a difference between 2 and 6 runs, plus 2 %."""
    for policy, least, reference in (
        ("l", 1.0, 49.6e3),
        ("l", 100.0, 13.7e3),
        ("b", 1.0, 10.8e3),
        ("b", 100.0, 12.4e3),
    ):
        trace = dp.simulate(
            f"heldp-ucb-{policy}",
            arms="@ren2020-bernoulli",
            levels="choice(0,0.2,1,2,100)",
            options={"epsilon_min": least},
            horizon=2 * 10**6,
            runs=6,
            seed=1,
        )
        error = trace.final_regret.std(ddof=1) * np.sqrt(1 / 6 + 1 / 2)
        assert abs(trace.final_regret.mean() - reference) <= 5 * error + 0.02 * reference


def test_one_level_for_all_makes_heldp_b_choose_as_ldp_b() -> None:
    """With the same responses the debiased index is an increasing function of the plain one."""
    rng = np.random.default_rng(0)
    plain = dp.Session(dp.policies.ldp_ucb_b(arms=3, epsilon=1.0))
    leveled = dp.Session(dp.policies.heldp_ucb_b(arms=3, epsilon_min=1.0))
    for _ in range(3000):
        decision = plain.ask()
        assert leveled.ask() == decision
        sent = encode(decision.id, Fraction(1), int(rng.random() < (0.7, 0.5, 0.4)[decision.number]))
        plain.tell(decision, sent)
        leveled.tell(decision, sent)


def test_at_a_huge_epsilon_ldp_b_is_ucb1() -> None:
    """But for a bit that is turned over: in 3000 of them with probability 1e-12."""
    rng = np.random.default_rng(0)
    private, open_ = dp.Session(dp.policies.ldp_ucb_b(arms=3, epsilon=1000.0)), dp.Session(dp.policies.ucb1(arms=3))
    for _ in range(3000):
        decision = private.ask()
        assert open_.ask() == decision
        reward = float(rng.random() < (0.7, 0.5, 0.4)[decision.number])
        private.tell(decision, private.device().respond(decision, reward))
        open_.tell(decision, reward)
