"""What holds for all theorems."""

from __future__ import annotations

import inspect
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bound_cases import C2, FIVE, TWO, basis, value
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpbandits.bounds import (
    LinearProblem,
    Problem,
    RewardLaw,
    applicable,
    central,
    evaluate,
    local,
    report,
    theorem_named,
    theorems,
)
from dpbandits.environments import Levels, NormalLevels
from dpbandits.errors import InputError
from dpbandits.policies import lookup

DOCUMENT = Path(__file__).parents[2] / "docs" / "theory.md"
TOOL = Path(__file__).parents[2] / "tools" / "theory_page.py"

PROBLEMS: dict[str, Problem | LinearProblem] = {
    "bernoulli": Problem.bernoulli(C2, 10**6, epsilon=0.5),
    "levels": Problem.bernoulli(C2, 10**6, levels=FIVE),
    "normal levels": Problem.bernoulli(C2, 10**6, levels=NormalLevels(1, 1)),
    "normal": Problem.gaussian([0.9, 0.6], 10**6, epsilon=0.5),
    "bounded": Problem.bounded([RewardLaw.of([0.4, 1.0]), RewardLaw.of([0.2, 0.6])], 10**6, epsilon=0.5),
    "linear": basis((1.0, 0.5), 0.5),
}


def test_every_theorem_applies_somewhere() -> None:
    applied = {bound.name for problem in PROBLEMS.values() for bound in applicable(problem)}
    assert applied == {theorem.name for theorem in theorems() if not theorem.statement.refuted}
    claimed = {one.name for problem in PROBLEMS.values() for one in evaluate(problem) if one.claimed is not None}
    assert claimed == {theorem.name for theorem in theorems() if theorem.statement.refuted} == {"dp-ucb-int"}


def test_every_policy_that_a_theorem_names_exists() -> None:
    for theorem in theorems():
        assert {*theorem.statement.policies} <= {*lookup.names()}, theorem.name
    assert "ldp-ucb-b" in local.bit_policies()


@pytest.mark.parametrize("theorem", theorems(), ids=lambda theorem: theorem.name)
def test_an_option_of_a_theorem_is_by_default_what_its_policies_have(theorem: Any) -> None:
    for policy in theorem.statement.policies:
        options = lookup.options(policy)
        for name, parameter in inspect.signature(theorem).parameters.items():
            if name in options and parameter.default is not None:  # None: the theorem chooses it
                assert parameter.default == options[name].default, f"{name} of {policy}"


@given(
    means=st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=2, max_size=30),
    horizon=st.integers(1, 10**8),
    epsilon=st.floats(1e-7, 100.0),
)
@settings(deadline=None)
@example(means=[0.5, 0.5], horizon=10, epsilon=1e-4)
@example(means=[0.5] * 101, horizon=100, epsilon=0.001)
def test_no_lower_bound_exceeds_what_random_play_loses(means: list[float], horizon: int, epsilon: float) -> None:
    """Random play is 0-private. It loses ``at_random`` on this problem, and T (1 - 1/K) at most on any."""
    problem = Problem.bernoulli(means, horizon, epsilon=epsilon)
    for bound in applicable(problem):
        if bound.kind == "lower":
            hardest = horizon * (1 - 1 / len(means))
            most = problem.at_random if bound.scope == "this problem" else hardest
            assert value(bound) <= most * (1 + 1e-12), bound.name
            assert bound.at([horizon / 3])[0] <= most or math.isnan(bound.at([horizon / 3])[0])


@pytest.mark.parametrize("theorem", theorems(), ids=lambda theorem: theorem.name)
def test_every_theorem_is_documented(theorem: Any) -> None:
    statement = theorem.statement
    assert theorem.__doc__
    assert ">>>" in theorem.__doc__
    assert statement.source
    assert statement.holds
    assert statement.form != "corrected" or statement.note
    assert statement.kind == "lower" or statement.policies
    assert theorem_named(theorem.name) is theorem


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_bound_is_a_rising_curve(name: str) -> None:
    problem = PROBLEMS[name]
    horizons = [10**3, 10**4, 10**5, 10**6]
    for bound in applicable(problem):
        curve = bound.at(horizons)
        assert np.all(np.isfinite(curve)), bound.name
        assert np.all(np.diff(curve) >= 0), bound.name
        assert curve[-1] == bound.value, bound.name
        assert curve[-1] > 0, bound.name


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_lower_bounds_lie_below_upper_bounds(epsilon: float) -> None:
    bounds = applicable(Problem.bernoulli(C2, 10**7, epsilon=epsilon))
    for lower in (b for b in bounds if b.kind == "lower" and b.scope == "this problem"):
        for upper in (b for b in bounds if b.kind == "upper"):
            if lower.trust in ("any", upper.trust) and (
                not lower.policies or set(upper.policies) & set(lower.policies)
            ):
                optimal = lower.rate is not None and upper.rate is not None and lower.rate == upper.rate
                assert optimal or value(lower) < value(upper), (lower.name, upper.name)


def test_privacy_never_helps() -> None:
    """Less epsilon, no smaller bound: for every theorem, on its own."""
    epsilons = [0.02, 0.1, 0.5, 1.0]
    for theorem in theorems():
        if theorem.about is Problem:
            for make in (Problem.bernoulli, Problem.gaussian):
                found = [theorem(make([0.75, 0.5], 10**6, epsilon=epsilon)) for epsilon in epsilons]
                values = [bound.value for bound in found if bound.value is not None]
                if len(values) == len(epsilons):
                    assert values == sorted(values, reverse=True), theorem.name


def test_a_failing_condition_gives_its_name_and_no_number() -> None:
    certain = Problem.bernoulli([1.0, 0.5], 10**6, epsilon=1.0)
    for bound in (central.dp_lower(certain), local.ldp_lower(certain), central.dp_lower_bernoulli(certain)):
        assert bound.value is None
        assert bound.holds == "does not apply: the best mean must be below 1, and is 1"
        assert np.isnan(bound.at([10, 100])).all()
    assert "alpha must be above 3, and is 3" in central.adap_ucb(TWO, alpha=3).holds
    wide = Problem.gaussian([0.9, 0.6], 100, sd=2.0, epsilon=1.0)
    assert "standard deviation must be at most 1, and is 2" in local.ldp_ucb_ls_gaussian(wide).holds
    far = Problem.gaussian([3.0, 0.6], 100, epsilon=1.0)
    assert "means must lie in [0, 1]" in local.ldp_ucb_bs_gaussian(far).holds
    assert "one epsilon" in local.ldp_ucb_l(Problem.bernoulli([0.9, 0.6], 100)).holds


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1000.0])
@pytest.mark.parametrize(
    "means", [[0.5], [0.5, 0.5], [0.9, 0.9 - 1e-9], [1.0, 0.0], [0.5, 0.0], [0.001, 0.0001], [0.999, 0.998]]
)
def test_extremes_give_a_number_or_a_reason(means: list[float], epsilon: float) -> None:
    for horizon in (1, 2, 10**9):
        for problem in (
            Problem.bernoulli(means, horizon, epsilon=epsilon),
            Problem.gaussian(means, horizon, epsilon=epsilon),
            Problem.bounded([RewardLaw.bernoulli(mean) for mean in means], horizon, epsilon=epsilon),
        ):
            for bound in evaluate(problem):
                assert bound.value is None or 0 <= bound.value < math.inf, bound.name


@pytest.mark.parametrize(
    "levels",
    [
        Levels.of([1e-3, 100]),
        Levels.of([0.0] * 9 + [5.0]),
        NormalLevels(0.01, 3),
        NormalLevels(-1, 1),
        NormalLevels(200, 1),
    ],
)
def test_extreme_populations_give_a_number_or_a_reason(levels: Levels | NormalLevels) -> None:
    for horizon in (1, 10, 10**9):
        for bound in evaluate(Problem.bernoulli([0.9, 0.6], horizon, levels=levels)):
            assert bound.value is None or 0 <= bound.value < math.inf, bound.name


def test_problems_refuse_what_they_cannot_be() -> None:
    with pytest.raises(InputError, match=r"means must lie in \[0, 1\], got 1\.2"):
        Problem.bernoulli([1.2], 100)
    with pytest.raises(InputError, match="horizon must be a whole number of at least 1, got 0"):
        Problem.bernoulli([0.5], 0)
    with pytest.raises(InputError, match="epsilon must be positive and finite, got -1"):
        Problem.bernoulli([0.5], 10, epsilon=-1)
    with pytest.raises(InputError, match="epsilon and levels must not both be given"):
        Problem.bernoulli([0.5], 10, epsilon=1.0, levels=FIVE)
    with pytest.raises(InputError, match="laws must be one for each arm of bounded rewards, got 0"):
        Problem((0.5,), 10, family="bounded")
    with pytest.raises(InputError, match="bound 'adap-ubc' is unknown: did you mean adap-ucb"):
        theorem_named("adap-ubc")


def test_every_theorem_has_its_line_in_the_documentation() -> None:
    lines = {line.split("`")[1]: line for line in DOCUMENT.read_text().splitlines() if line.startswith("| `")}
    for theorem in theorems():
        line = lines[theorem.name]
        assert theorem.statement.source in line
        assert f"| {theorem.statement.form}" in line
        assert (", not checked |" in line) == (not theorem.statement.checked and not theorem.statement.refuted)
        assert (", refuted |" in line) == bool(theorem.statement.refuted)
    assert subprocess.run([sys.executable, TOOL, "--check"], check=False).returncode == 0


def test_report_is_the_contract() -> None:
    shown = json.loads(json.dumps(report(PROBLEMS["bernoulli"]), allow_nan=False))
    assert set(shown) == {"lower", "upper", "policies"}
    assert {"value", "source", "holds", "note", "form"} <= set(shown["upper"]["adap-ucb"])
    assert shown["upper"]["ldp-ucb-ls-gaussian"]["value"] is None
    assert "adap-klucb" in shown["policies"]
    assert "ldp-ucb-ls" not in shown["policies"]
    names = [bound.name for bound in evaluate(PROBLEMS["bernoulli"])]
    assert names == sorted(set(names))


def test_policies_that_the_page_lists_without_an_upper_bound_have_none() -> None:
    section = DOCUMENT.read_text().split("## Policies without an upper bound\n")[1].split("\n## ")[0]
    listed = {
        name for line in section.splitlines()[3:] for name in re.findall(r"`([a-z0-9-]+)`", line.split("|")[2:][0])
    }
    bounded = {
        name
        for theorem in theorems()
        if theorem.statement.kind == "upper" and not theorem.statement.refuted
        for name in theorem.statement.policies
    }
    assert len(listed) > 10
    assert listed <= set(lookup.names())
    assert not {name for name in listed & bounded if lookup.traits(name).private}
