"""Plans: what is asked, what is played, and what is answered."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.bounds.divergences import kl_across
from dpbandits.errors import InputError
from dpbandits.planning import ask, plan, plan_levels
from dpbandits.planning.grid import candidates, enough_runs, play, play_all
from dpbandits.policies import lookup

Command = Callable[..., tuple[int, str, str]]
TWO = ("--arms", "0.9,0.6", "--horizon", "1e4", "--runs", "4", "--policy", "adap-klucb", "--policy", "ldp-ucb-b")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "arms is required by plan, got none"),
        (("--arms", "5"), "best is required where arms is a number (5), got none"),
        (("--arms", "5", "--best", "0.3"), "gap is required where arms is a number (5), got none"),
        (("--arms", "1", "--best", "0.3", "--gap", "0.1"), "arms must be a whole number of at least 2, got 1"),
        (("--arms", "5", "--best", "1.3", "--gap", "0.1"), "best must be a mean in (0, 1], got 1.3"),
        (("--arms", "5", "--best", "0.3", "--gap", "0.4"), "gap must be positive and at most best, 0.3, got 0.4"),
        (("--arms", "0.9,0.6", "--gap", "0.4"), "gap is for a number of arms, got the arms 0.9,0.6"),
        (("--arms", "0.9,0.9", "--horizon", "10"), "arms must not all have the same mean, got 0.9,0.9"),
        (("--arms", "0.9,0.6"), "horizon is required, or traffic (per day) with days, got none"),
        ((*TWO, "--days", "3"), "days is not needed beside a horizon, got 3"),
        ((*TWO, "--trust", "both"), "trust 'both' is unknown: known are central, local, any"),
        ((*TWO, "--epsilon", "0"), "epsilon must be positive and finite, got 0.0"),
        ((*TWO, "--epsilon", "2:1"), "epsilon must be one, a list E,E or a range LOW:HIGH with LOW < HIGH, got '2:1'"),
        ((*TWO, "--budget", "x%"), "budget must be a number, or one in percent such as 10%, got 'x%'"),
        ((*TWO, "--budget", "-5"), "budget must be positive and finite, got -5.0"),
        ((*TWO, "--refuse", "120%"), "refuse must be at least 0% and below 100%, got 120%"),
        ((*TWO, "--policy", "adap-klcub"), "policy 'adap-klcub' is unknown: did you mean"),
        ((*TWO, "--runs", "1"), "runs must be a whole number of at least 2, got 1"),
        ((*TWO, "levels", "--levels", "constant(1)"), "arms must come after plan levels, got it before"),
        (("levels", "--levels", "constant(0)"), "levels must have a positive one, got none"),
        (
            ("levels", "--levels", "constant(1)", "--kind", "gauss"),
            "kind 'gauss' is unknown: known are laplace, bernoulli",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_2(dpbandits: Command, words: tuple[str, ...], message: str) -> None:
    code, out, err = dpbandits("plan", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"dpbandits: {message}")
    assert err.count("\n") == 1


def test_json_and_terminal_agree(dpbandits: Command, tmp_path: Path) -> None:
    code, out, err = dpbandits("plan", *TWO, "--epsilon", "1", "--json", "--out", str(tmp_path))
    found = json.loads(out)
    assert code == 0
    assert "written" in err
    assert json.loads((tmp_path / "plan.json").read_text()) == found
    assert found["best"]["central"]["policy"] == "adap-klucb"
    assert found["question"]["epsilons"] == [1.0]
    assert ask("0.9,0.6", horizon=100, epsilon=1, curve=True).epsilons == (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    text = dpbandits("plan", *TWO, "--epsilon", "1")[1]
    for sentence in found["answers"]:
        assert f"* {sentence}" in text
    one = next(o for o in found["outcomes"] if (o["label"], o["epsilon"]) == ("adap-klucb", 1.0))
    trace = dp.simulate("adap-klucb", arms="0.9,0.6", horizon=10_000, epsilon=1, runs=one["runs"], checkpoints=120)
    assert one["regret"] == pytest.approx(trace.final_regret.mean())
    assert one["loss"] == pytest.approx(one["regret"] / 9000)


def test_the_delta_of_users_is_an_option(dpbandits: Command) -> None:
    words = ("--epsilon", "1", "--policy", "ldp-ucb-b", "--rewards-per-user", "100", "--user-delta", "1e-6", "--json")
    code, out, _ = dpbandits("plan", *TWO, *words)
    played = {(one["policy"], one["epsilon"], one["delta"]) for one in json.loads(out)["outcomes"]}
    assert (code, ("ldp-ucb-b", 1.0, 1e-6) in played) == (0, True)


def test_a_budget_that_no_policy_meets_is_exit_1(dpbandits: Command) -> None:
    code, out, _ = dpbandits("plan", *TWO, "--epsilon", "0.1:1", "--budget", "5")
    assert code == 1
    assert "no policy here meets the budget of 5 rewards" in out


def test_the_least_epsilon_keeps_the_budget_and_less_does_not() -> None:
    found = plan("0.9,0.6", horizon=1e5, epsilon="0.1:10", budget=1000, trust="central", policies=["adap-imed"], runs=8)
    kept = found.budgets[0].outcome
    assert kept is not None
    assert kept.epsilon is not None
    assert kept.interval[1] <= 1000
    smaller = [o for o in found.outcomes if o.epsilon is not None and o.epsilon < kept.epsilon]
    assert smaller
    assert all(o.interval[1] > 1000 for o in smaller if o.label == kept.label)
    assert kept.epsilon <= found.focus


def test_regimes_are_where_the_terms_cross() -> None:
    found = plan("0.9,0.6,0.3", horizon=1000, epsilon=1, runs=2, policies=["adap-ucb"])
    crossings = sorted(kl_across(0.9 - gap, gap) / (6 * gap) for gap in (0.3, 0.6))
    assert found.regimes == pytest.approx(tuple(crossings))


def test_slow_and_unsuitable_policies_are_named() -> None:
    names, left_out = candidates(ask("0.9,0.6", horizon=1000))
    slow = {name for name in lookup.names() if lookup.traits(name).slow}
    assert {"dp-ucb", "thompson"} <= slow
    assert not slow & {one.name for one in names}
    assert slow <= {one.policy for one in left_out}
    assert "heldp-ucb-b" not in {one.name for one in names}
    assert "heldp-ucb-b" in {one.name for one in candidates(ask("0.9,0.6", horizon=1000, refuse="20%"))[0]}
    normal = candidates(ask("normal(0.9,1)+normal(0.5,1)", horizon=1000))[0]
    assert {"ldp-ucb-bs", "ucb1"} <= {one.name for one in normal}


def test_policies_that_are_made_to_name_the_best_arm_are_played_only_if_asked_for() -> None:
    names, left_out = candidates(ask("0.9,0.6", horizon=1000))
    assert {"adap-tt", "ctb-tt", "dp-tt"} <= {one.policy for one in left_out if "best arm" in one.reason}
    assert "dp-se" in {one.name for one in names}
    assert "ctb-tt" in {one.name for one in candidates(ask("0.9,0.6", horizon=1000, policies=["ctb-tt"]))[0]}


def test_policies_that_may_be_best_get_equally_many_runs() -> None:
    """Else the one whose runs take less time would have the lower upper end, and be advised."""
    arms = "0.036,0.03,0.03,0.03,0.03"
    question = ask(arms, horizon=100_000, epsilon=1, trust="local", policies=["ctb-tt", "ldp-imed-b"], runs=8)
    found, _ = play_all(question)
    first, second = (outcome for outcome in found if outcome.epsilon is not None)
    assert first.runs == second.runs > 8
    assert enough_runs(question, first) != enough_runs(question, second)


def test_a_plan_says_how_many_runs_its_policies_got() -> None:
    found = plan("0.9,0.6", horizon=1000, epsilon=1, trust="local", runs=4, policies=["ldp-imed-b", "ldp-ucb-l"])
    runs = sorted(outcome.runs for outcome in found.outcomes)
    assert runs[0] < runs[-1]
    assert f"; {runs[0]:,} to {runs[-1]:,} runs, seed 0" in repr(found)


def test_normal_rewards_are_planned_with_the_policies_for_them() -> None:
    found = plan("normal(0.9,1)+normal(0.1,1)", horizon=5000, epsilon=2, trust="local", runs=4)
    assert found.best(2.0, "local") is not None
    assert {"ldp-ucb-bs", "ldp-ucb-ls", "ucb1"} <= {o.policy for o in found.outcomes}
    assert all(lookup.traits(o.policy).any_reward or o.policy == "ucb1" for o in found.outcomes)
    assert any(one.policy == "ldp-ucb-b" and "unbounded" in one.reason for one in found.left_out)


def test_refusals_are_played_as_they_happen() -> None:
    """Scaled runs against sessions in which every fifth user, at random, tells nothing (refused below 1e-5)."""
    question = ask("0.9,0.5", horizon=2000, epsilon=1, refuse="20%", runs=60)
    outcome = play(question, "adap-ucb", 1.0, Fraction(1, 5))
    regrets = []
    for run in range(60):
        rng = np.random.default_rng([17, run])
        session = dp.Session(policies.adap_ucb(arms=2, epsilon=1.0), noise="simulated", seed=run)
        means = rng.permutation([0.9, 0.5])
        regret = 0.0
        for _ in range(2000):
            decision = session.ask()
            regret += 0.9 - means[decision.number]
            if rng.random() >= 0.2:
                session.tell(decision, float(rng.random() < means[decision.number]))
        regrets.append(regret)
    error = math.hypot(outcome.stderr, float(np.std(regrets, ddof=1)) / math.sqrt(60))
    assert abs(outcome.regret - np.mean(regrets)) <= 4.5 * error + 0.4  # a stint's end is rounded to a round


def test_the_population_chooses_epsilon_min() -> None:
    common = {"arms": "0.9,0.6", "horizon": 1000, "runs": 2, "levels": "choice(0,0.2,1,2,100)"}
    for name, expected in (("heldp-ucb-l", 100.0), ("heldp-ucb-b", 2.0), ("heldp-ucb-ls", 100.0)):
        chosen = dp.simulate(name, options={"epsilon_min": "auto"}, **common)  # type: ignore[arg-type]
        given = dp.simulate(name, options={"epsilon_min": expected}, **common)  # type: ignore[arg-type]
        assert chosen.options == {"epsilon_min": expected}
        assert np.array_equal(chosen.pulls, given.pulls)


def test_auto_is_refused_where_no_population_is_known() -> None:
    with pytest.raises(InputError, match="levels is required by epsilon_min=auto, got none"):
        dp.simulate("heldp-ucb-b", arms="0.9,0.6", horizon=100, options={"epsilon_min": "auto"})
    with pytest.raises(InputError, match="epsilon_min must be a number, positive and finite, got 'auto'"):
        policies.heldp_ucb_b(arms=2, epsilon_min="auto")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="epsilon_min is not an option of adap-ucb"):
        dp.simulate("adap-ucb", arms="0.9,0.6", horizon=100, epsilon=1, options={"epsilon_min": "auto"})


def test_the_curve_of_levels_is_the_papers() -> None:
    """Spec'd values of V_L and V_B for the two populations of the HeLDP paper."""
    laplace, bernoulli = plan_levels("choice(0,0.2,1,2,100)")
    assert laplace.costs == pytest.approx([148.8, 19.5, 12.6, 5.41], rel=5e-3)
    assert bernoulli.costs == pytest.approx([33.8, 4.11, 3.41, 5.00], rel=5e-3)
    assert laplace.shares == pytest.approx([0.8, 0.6, 0.4, 0.2])
    (normal,) = plan_levels("normal(1,1)", "bernoulli")
    assert normal.best_cost == min(normal.costs)
    assert normal.best_cost == pytest.approx(4.73, abs=5e-3)


def test_levels_name_the_policies_without_a_threshold(dpbandits: Command) -> None:
    code, out, _ = dpbandits("plan", "levels", "--levels", "choice(1,2)", "--kind", "bernoulli")
    assert code == 0
    assert "These policies need no epsilon_min, and discard nobody: heldp-glr-b, heldp-weighted-b." in out


def test_levels_are_drawn_and_kept(dpbandits: Command, tmp_path: Path) -> None:
    code, out, _ = dpbandits("plan", "levels", "--levels", "choice(1,2)", "--json", "--out", str(tmp_path))
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "levels.json").read_text())
    assert (tmp_path / "levels.svg").read_text().count("<svg") == 1
