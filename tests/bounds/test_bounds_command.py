"""``dpbandits bounds``, the arms' text as a problem, and bounds drawn with a trace."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest

import dpbandits as dp
import dpbandits.bounds as bounds
from dpbandits.bounds import central, divergences
from dpbandits.bounds.problem import law_of
from dpbandits.environments import Arms
from dpbandits.environments.distributions import Beta
from dpbandits.errors import InputError
from dpbandits.privacy import Guarantee

matplotlib.use("Agg")

Command = Callable[..., tuple[int, str, str]]


C2 = ("--arms", "0.75,0.625,0.5", "--horizon", "1e7", "--epsilon", "1")


def test_every_theorem_has_a_line(dpbandits: Command) -> None:
    code, out, err = dpbandits("bounds", *C2)
    assert (code, err) == (0, "")
    words = out.split()
    for theorem in bounds.theorems():
        assert (theorem.name in words) == (theorem.about is bounds.Problem), theorem.name


def test_json_holds_the_contract(dpbandits: Command) -> None:
    code, out, _ = dpbandits("bounds", *C2, "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"lower", "upper", "policies"}
    asked = bounds.Problem.bernoulli([0.75, 0.625, 0.5], 10**7, epsilon=1.0)
    assert found["upper"]["adap-ucb"]["value"] == central.adap_ucb(asked).value
    assert found["lower"]["dp-lower"]["source"] == "Azize & Basu 2022, Theorem 3"
    assert found["upper"]["ldp-ucb-ls-slope"]["value"] is None
    assert "ldp-ucb-ls" not in found["policies"]


def test_options_reach_the_theorems_that_take_them(dpbandits: Command) -> None:
    plain = json.loads(dpbandits("bounds", *C2, "--json")[1])["upper"]
    changed = json.loads(dpbandits("bounds", *C2, "--option", "alpha=4", "--option", "schedule=x", "--json")[1])[
        "upper"
    ]
    assert {name for name in plain if plain[name] != changed[name]} == {
        "adac-ucb",
        "adap-imed",
        "adap-klucb",
        "adap-klucb-printed",
        "adap-ucb",
        "adap-ucb-minimax",
        "adap-ucb-minimax-printed",
        "adap-ucb-printed",
        "dp-ucb-int",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (C2[:4], "epsilon or levels is required by bounds, got none"),
        ((*C2[:5], "-1"), "epsilon must be positive and finite, got -1.0"),
        ((*C2, "--levels", "constant(1)"), "epsilon and levels must not both be given, got 1.0 and"),
        ((*C2, "--option", "alpa=1"), "alpa is not an option of a bound: did you mean alpha?"),
        ((*C2, "--option", "alpha=x"), "alpha must be a number, got 'x'"),
        ((*C2, "--option", "schedule=z"), "schedule 'z' is unknown: known are constant, x, y, exact"),
        (
            ("--arms", "normal(0,1)+normal(1,2)", *C2[2:]),
            "arms: the bounds for normal rewards need one sd, got 1 and 2",
        ),
        (("--arms", "normal(0,1)+beta(1,2)", *C2[2:]), "arms: bounds need rewards in [0, 1], normal(0,1) pays in"),
        (("--arms", "0.1,0.2", "--horizon", "0", "--epsilon", "1"), "horizon must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(dpbandits: Command, words: tuple[str, ...], message: str) -> None:
    code, out, err = dpbandits("bounds", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"dpbandits: {message}")
    assert err.count("\n") == 1


def test_arms_become_the_family_that_they_are() -> None:
    def problem(text: str, within: tuple[float, float] | None = None) -> bounds.Problem:
        return bounds.Problem.on(Arms.of(text), 10, reward_range=within)

    assert problem("choice(0,1,1)+beta(1,1)").family == "bounded"
    assert problem("choice(0,1,1,1)+bernoulli(0.5)").means == (0.75, 0.5)
    normal = problem("2*normal(0.5,0.3)+normal(1,0.3)")
    assert (normal.family, normal.sd, normal.means) == ("normal", 0.3, (0.5, 0.5, 1.0))
    clipped = problem("uniform(0,4)+choice(1,3,3)", (0.0, 4.0))
    assert clipped.means == pytest.approx((0.5, 7 / 12))
    with pytest.raises(InputError, match="bounds need rewards in"):
        problem("uniform(0,4)+uniform(0,1)", (0.0, 2.0))


def test_quantiles_stand_for_a_continuous_law() -> None:
    """d_inf of Beta(2, 3) to mean 0.6 by the dual with an integral, against the law on 1000 quantiles."""
    from scipy.integrate import quad
    from scipy.optimize import minimize_scalar
    from scipy.stats import beta

    def dual(s: float) -> float:
        return float(-quad(lambda x: math.log1p(-s * (x - 0.6)) * beta.pdf(x, 2, 3), 0, 1)[0])

    exact = -minimize_scalar(dual, bounds=(0, 2.4999), method="bounded", options={"xatol": 1e-9}).fun
    assert divergences.d_inf(law_of(Beta(2, 3)), 0.6) == pytest.approx(exact, rel=1e-3)


def test_a_policy_is_under_the_lower_bounds_of_its_promise() -> None:
    asked = bounds.Problem.bernoulli([0.9, 0.6], 1000, epsilon=1.0)

    def lower(policy: str, promise: Guarantee) -> list[str]:
        return [bound.name for bound in bounds.for_policy(asked, policy, promise) if bound.kind == "lower"]

    assert lower("ucb1", Guarantee.none()) == ["lai-robbins"]
    assert lower("dp-ucb-int", Guarantee.central(1.0, 0.1)) == ["lai-robbins"]
    assert lower("adap-ucb", Guarantee.central(1.0)) == ["dp-lower", "dp-lower-bernoulli", "lai-robbins"]


def test_a_trace_draws_its_bounds() -> None:
    import matplotlib.pyplot as plt

    trace = dp.simulate("adap-ucb", arms="0.9,0.6", epsilon=1, horizon=10_000, runs=3, options={"alpha": 4})
    axes = trace.plot(bounds=True)
    labels = [str(line.get_label()) for line in axes.get_lines()]
    assert labels[1:] == [
        "at most: adap-ucb-minimax",
        "at most: adap-ucb",
        "at least, as t grows: dp-lower-bernoulli (not checked)",
        "at least, as t grows: dp-lower, lai-robbins",
    ]
    upper = np.asarray(axes.get_lines()[2].get_ydata())
    asked = bounds.Problem.bernoulli([0.9, 0.6], 10_000, epsilon=1.0)
    assert upper[-1] == central.adap_ucb(asked, alpha=4.0).value
    assert len(trace.plot().get_lines()) == 1
    plt.close("all")


def test_bounds_of_a_range_are_in_the_unit_of_the_rewards() -> None:
    import matplotlib.pyplot as plt

    lines = [
        dp.simulate("adap-ucb", arms=arms, epsilon=1, horizon=1000, runs=2, reward_range=within).plot(bounds=True)
        for arms, within in (("uniform(0,1)+uniform(0,0.5)", (0.0, 1.0)), ("uniform(0,10)+uniform(0,5)", (0.0, 10.0)))
    ]
    one, ten = (np.asarray(axes.get_lines()[-1].get_ydata(), dtype=float) for axes in lines)
    assert ten == pytest.approx(10 * one)
    plt.close("all")


def test_theorems_on_linear_bandits_have_lines_of_their_own(dpbandits: Command) -> None:
    """On the standard basis: two arms with a gap of 1/2."""
    words = ("bounds", "--arms", "0.9,0.4", "--horizon", "10000", "--epsilon", "1", "--linear")
    status, out, _ = dpbandits(*words, "--json")
    assert status == 0
    lower = json.loads(out)["lower"]
    assert set(lower) == {"linear-minimax-lower", "linear-minimax-lower-printed", "linear-lower"}
    assert lower["linear-minimax-lower"]["value"] == pytest.approx(math.exp(-2) * 2 * 100 / 8)
    assert lower["linear-lower"]["value"] > 0
    assert "linear-lower" in dpbandits(*words)[1]
    status, _, error = dpbandits(
        "bounds", "--arms", "0.9,0.4", "--horizon", "100", "--levels", "constant(1)", "--linear"
    )
    assert (status, error) == (2, "dpbandits: epsilon is required by bounds --linear, got none\n")


def test_what_is_refuted_is_no_bound(dpbandits: Command) -> None:
    """Theorem 3.5 of Tossou & Dimitrakakis 2016: shown as claimed, and nowhere as a bound."""
    words = ("bounds", "--arms", "0.9,0.6", "--horizon", "1e6", "--epsilon", "1")
    found = json.loads(dpbandits(*words, "--json")[1])
    one = found["upper"]["dp-ucb-int"]
    assert one["value"] is None
    assert one["claimed"] == pytest.approx(386, abs=1)
    assert one["holds"].startswith("refuted by simulation")
    assert "dp-ucb-int" not in found["policies"]
    out = dpbandits(*words)[1]
    upper, claimed = out.split("Claimed in print, and refuted by simulation:")
    assert "dp-ucb-int" not in upper
    assert "dp-ucb-int" in claimed
    trace = dp.simulate("dp-ucb-int", arms="0.9,0.6", epsilon=1, horizon=1000, runs=2)
    assert [bound.name for bound in trace.bounds()] == ["lai-robbins"]


def test_the_words_are_true_at_every_horizon(dpbandits: Command) -> None:
    """At 10^6 rounds 1,271 log t is 17,564, and random play loses 4,800."""
    words = ("bounds", "--arms", "0.036,0.03,0.03,0.03,0.03", "--horizon", "1e6", "--epsilon", "1")
    out = dpbandits(*words)[1]
    assert "1,271 log t" in out
    assert "Playing at random loses 4,800" in out
    assert "17,5" not in out
    lower = json.loads(dpbandits(*words, "--json")[1])["lower"]["ldp-lower-randomised-response"]
    assert lower["rate"] == pytest.approx(1271, abs=1)
    assert lower["value"] == pytest.approx(4800)
