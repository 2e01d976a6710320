"""DP-UCB-INT with the exact schedule: shorter intervals, the same promise, up to the horizon."""

from __future__ import annotations

import math

import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.privacy.interval_accounting import exact_interval, interval_cost
from dpbandits.testing import LAWS, Case

PAPER = {"delta": math.exp(-10), "v": 1.1}


@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_releases_come_at_the_exact_interval(epsilon: float) -> None:
    curator = policies.dp_ucb_int(arms=2, epsilon=epsilon, schedule="exact", horizon=100_000).curator
    interval = exact_interval(epsilon, horizon=100_000, **PAPER)
    assert curator.release_points.tolist() == [interval] * 2  # type: ignore[attr-defined]
    assert interval_cost(interval, horizon=100_000, **PAPER).epsilon <= epsilon


def test_rounding_does_not_lengthen_any_interval() -> None:
    from dpbandits.privacy.release_points import CONSTANT, next_release

    for interval in [*range(1, 3000), 10**6, 10**9]:
        assert next_release(0, 1.0 / (interval - 0.5), 1.1, CONSTANT) == interval


def test_horizon_binds_the_exact_schedule_only() -> None:
    exact = lookup.make("dp-ucb-int", arms=2, epsilon=1.0, horizon=1000, given={"schedule": "exact"})
    assert exact.horizon == 1000
    assert exact.fresh().horizon == 1000
    assert "at most 1000 rounds" in exact.guarantee.conditions
    for schedule in ("constant", "x", "y"):
        other = lookup.make("dp-ucb-int", arms=2, epsilon=1.0, horizon=1000, given={"schedule": schedule})
        assert other.horizon is None
        assert "rounds" not in other.guarantee.conditions


def test_a_session_ends_at_the_horizon() -> None:
    session = dp.Session(policies.dp_ucb_int(arms=2, epsilon=1.0, schedule="exact", horizon=300))
    for _ in range(300):
        session.tell(session.ask(), 1.0)
    with pytest.raises(InputError, match="horizon is 300 rounds"):
        dp.Session.thaw(session.freeze()).ask()


def test_exact_without_a_horizon_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="horizon is required by schedule=exact, got none"):
        policies.dp_ucb_int(arms=2, epsilon=1.0, schedule="exact")
    with pytest.raises(InputError, match=r"epsilon must be at least .* one release at the horizon, got 0.001"):
        policies.dp_ucb_int(arms=2, epsilon=0.001, schedule="exact", horizon=1000)


@pytest.mark.parametrize("law", LAWS)
def test_it_obeys_every_law(law: str) -> None:
    LAWS[law](Case(policies.dp_ucb_int, settings={"schedule": "exact"}))


@pytest.mark.parametrize("arms", ["@tossou2016-two", "@tossou2016-ten"])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_regret_is_no_worse_than_the_y_rule_on_the_papers_problems(arms: str, epsilon: float) -> None:
    """60 runs each; refuses an exact schedule that is as good as the y-rule with probability below 1e-5."""
    traces = [
        dp.simulate(
            "dp-ucb-int",
            arms=arms,
            epsilon=epsilon,
            horizon=100_000,
            runs=60,
            options={"schedule": schedule},
            workers=2,
        )
        for schedule in ("exact", "y")
    ]
    error = math.hypot(*(trace.stderr[-1] for trace in traces))
    means = [trace.final_regret.mean() for trace in traces]
    assert means[0] <= means[1] + 4.3 * error, means


def test_a_delta_of_zero_is_pure() -> None:
    policy = policies.dp_ucb_int(2, epsilon=1.0, delta=0.0, schedule="exact", horizon=10_000)
    assert (policy.guarantee.epsilon, policy.guarantee.delta) == (1.0, 0.0)
    interval = exact_interval(1.0, 0.0, 1.1, 10_000)
    assert interval_cost(interval, 1.1, 10_000, 0.5).pure <= 1.0
    assert interval > exact_interval(1.0, math.exp(-10), 1.1, 10_000)
    rule = "delta must be positive with schedule=y, which holds for any number of rounds, got 0: use schedule=exact"
    with pytest.raises(InputError, match=rule):
        policies.dp_ucb_int(2, epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_a_large_delta_shortens_the_interval(delta: float) -> None:
    """Its cost by Renyi divergences may be below 0."""
    assert exact_interval(0.1, delta, 1.1, 100_000) < exact_interval(0.1, 0.001, 1.1, 100_000)
