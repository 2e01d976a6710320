"""Whether the best arm is known, and what may be wrong: from releases and counts, on each kind of database."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from calls import create, decide, folded, read, respond
from starlette.testclient import TestClient

from dpbandits.curators import LocalBernoulli, LocalPiecewise, confidence, interval
from dpbandits.curators.confidence import interval_of_any_stint
from dpbandits.errors import InputError
from dpbandits.mechanisms import response_probability
from dpbandits.service import evidence
from dpbandits.service.estimates import _of_held_out, estimate
from dpbandits.service.evidence import converged
from dpbandits.service.experiment import Experiment, Settings
from dpbandits.service.health import findings
from dpbandits.service.state import LiveState


def played(
    policy: str, means: tuple[float, ...], rounds: int, seed: int, **more: Any
) -> tuple[Experiment, LiveState, bool]:
    """An experiment after this many rounds, and whether the best arm was ever said to be another one than the first."""
    arms = [f"arm {n}" for n in range(len(means))]
    asked = {"name": "x", "arms": arms, "policy": policy, "epsilon": "2", "response_window": None, **more}
    experiment = Experiment(1, Settings.model_validate(asked))
    state = LiveState(experiment.policy, math.inf)
    chance, (noise, choices) = random.Random(seed), np.random.default_rng(seed).spawn(2)
    lie = 1.0 / (1.0 + math.exp(2.0)) if experiment.local else 0.0
    wrong = False
    for t in range(rounds):
        arm, stint = state.decide(float(t), noise, choices)
        bit = (chance.random() < means[arm]) != (chance.random() < lie)
        state.receive(arm, stint, float(t), float(bit), 2.0, float(t), noise)
        if t % 25 == 0:
            wrong |= converged(experiment, state)["arm"] not in (None, arms[0])
    return experiment, state, wrong


@pytest.mark.parametrize("policy", ["ldp-ucb-b", "adap-ucb", "dp-klucb", "dp-tt", "ucb1"])
def test_the_best_arm_is_named_once_it_is_clear(policy: str) -> None:
    more: dict[str, Any] = {"epsilon": None} if policy == "ucb1" else {}
    experiment, state, _ = played(policy, (0.9, 0.1), 1500, seed=0, **more)
    known = converged(experiment, state)
    assert known["arm"] == "arm 0"
    assert policy == "dp-tt" or known["at_least"] > known["at_most"]
    assert known["words"] == "Stop now: arm 0 is best, with error at most 5 %."


def test_a_policy_for_any_reward_says_whose_mean_it_knows() -> None:
    """It learns the logistic function of the reward: an estimate is no mean of rewards, with or without a range."""
    for reward in ({"kind": "unbounded"}, {"kind": "bounded", "low": 0, "high": 100}):
        experiment, state, _ = played("ldp-ucb-bs", (0.9, 0.1), 1500, seed=0, reward=reward)
        said = estimate(experiment, state, 0)
        assert said is not None
        assert said["of"].startswith("the logistic function of the reward")
        assert 0.5 < said["interval"][0] < said["mean"] < said["interval"][1] < 1.1
        known = converged(experiment, state)
        assert known["words"].startswith("Stop now: arm 0 is best by the mean of the logistic function of the reward")
        assert 1.1 > known["at_least"] > known["at_most"]


def test_a_wrong_arm_is_seldom_named_however_often_one_looks() -> None:
    """40 runs of two arms that differ by nothing that can be seen, with 24 looks each.

    If a run were wrong with probability 0.05, at least 9 of 40 would be wrong with probability below 2e-4.
    """
    wrong = sum(played("ldp-ucb-b", (0.5, 0.4999), 600, seed)[2] for seed in range(40))
    assert wrong < 9


def test_nothing_is_claimed_where_no_bound_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a policy of one's own, whose curator has none."""
    experiment, state, _ = played("heldp-weighted-l", (0.9, 0.1), 800, seed=0, epsilon=None, levels=["2"])
    assert "cannot say" not in converged(experiment, state)["words"]
    unknown = confidence.found.dispatch(object)
    monkeypatch.setattr(evidence, "interval_of_any_stint", lambda curator, arm, beta, _: unknown(curator, arm, beta))
    assert "cannot say" in converged(experiment, state)["words"]
    fresh = LiveState(experiment.policy, math.inf)
    assert "Too early" in converged(experiment, fresh)["words"]


def found(counts: list[dict[str, int]], due: list[int], recent: list[int], **settings: Any) -> dict[str, str]:
    """What is found about an experiment with these counts, by what it is about: level and text."""
    asked = {"name": "x", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1", **settings}
    experiment = Experiment(1, Settings.model_validate(asked))
    state = LiveState(experiment.policy, experiment.window)
    full = [
        dict.fromkeys(("decisions", "silent", "used", "apart", "late", "duplicate", "refused"), 0) | row
        for row in counts
    ]
    return {
        one.about: f"{one.level}: {one.text}" for one in findings(experiment, state, full, due, recent, {"arm": None})
    }


def test_findings_and_their_causes() -> None:
    busy = {"decisions": 500, "used": 500}
    assert not found([busy, busy], [500, 500], [100, 100])
    assert "quiet" in found([{}, {}], [0, 0], [0, 0])
    assert "no response" in found([{"decisions": 300}, {}], [300, 0], [300, 0])["silence"]
    assert "no response comes back" in found([{"decisions": 300}, {}], [300, 0], [300, 0])["collapse"]
    assert "40 %" in found([{"decisions": 500, "used": 300}, busy | {"used": 300}], [500, 500], [9, 9])["missing"]
    late = found([{"decisions": 500, "used": 250, "late": 250}, {}], [500, 0], [9, 9], response_window=5)
    assert "now 5 s" in late["late"]
    closed = found([{"decisions": 500, "used": 250, "late": 250}, {}], [500, 0], [9, 9], policy="adap-ucb")
    assert "their stint had closed" in closed["closed"]
    assert "draw twice" in found([busy | {"refused": 1}, busy], [500, 500], [9, 9])["refused"]
    assert "counts once" in found([busy | {"duplicate": 200}, busy], [500, 500], [9, 9])["duplicate"]
    unlike = found([busy, {"decisions": 500, "used": 430}], [500, 500], [9, 9])
    assert "86 % of the decisions on b" in unlike["unlike"]
    assert "prefers it" in found([busy, busy], [500, 500], [500, 0])["collapse"]
    assert "long stint" in found([busy, busy], [500, 500], [500, 0], policy="adap-ucb")["collapse"]


def test_all_traffic_on_one_arm_is_a_warning_only_where_something_else_is_wrong() -> None:
    """The level is not read off the text."""
    busy = {"decisions": 500, "used": 500}
    for policy in ("ldp-ucb-b", "adap-ucb"):
        assert found([busy, busy], [500, 500], [500, 0], policy=policy)["collapse"].startswith("note")
    for wrong in ({"used": 0}, {"used": 300}, {"used": 250, "late": 250}):
        assert found([busy | wrong, {}], [500, 0], [500, 0])["collapse"].startswith("warning")


@pytest.mark.parametrize("policy", ["ldp-ucb-b", "ldp-ucb-l", "ldp-imed-p"])
def test_the_mean_of_held_out_users_is_undone_as_their_mechanism_asks(policy: str) -> None:
    """The responses are as many and as large as they are on average if the mean reward is 1/4."""
    asked = {"name": "x", "arms": ["a", "b"], "policy": policy, "epsilon": "2", "holdout": 0.5, "baseline": "a"}
    experiment = Experiment(1, Settings.model_validate(asked))
    n, mean = 10_000, {"ldp-ucb-b": response_probability(0.25, 2.0), "ldp-ucb-l": 0.25}
    if policy == "ldp-imed-p":
        curator = LocalPiecewise.start(2, epsilon=2.0)
        mean[policy] = curator.offset + curator.slope * 0.25
    shown = _of_held_out(experiment, [(2.0, n, n * experiment.steps * mean[policy])])
    assert math.isclose(shown["mean"], 0.25, rel_tol=1e-9)
    low, high = shown["interval"]
    assert 0.1 < low < 0.25 < high < 0.4


@pytest.mark.parametrize("said", ["none", "shout"])
def test_a_local_curator_must_say_what_clients_can_do(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """As one of a user's own may not. It is not guessed from what devices send."""
    asked = {"name": "x", "arms": ["a", "b"], "policy": "ldp-ucb-b", "epsilon": "1"}
    monkeypatch.setattr(LocalBernoulli, "mechanism", said)
    with pytest.raises(InputError, match=f"policy must have a curator whose mechanism is .*, got ldp-ucb-b: '{said}'"):
        Experiment(1, Settings.model_validate(asked))


def test_the_summary_says_it(client: TestClient) -> None:
    create(client)
    for _ in range(6):
        respond(client, decide(client)["token"], 1)
    summary = folded(client)
    assert summary["converged"]["converged"] is False
    assert summary["converged"]["leader"] in ("red", "green", "blue")
    assert summary["health"] == []
    assert summary["arms"][0]["counts"]["used"] == summary["arms"][0]["responses"]


def test_the_overview_shows_all_experiments(client: TestClient) -> None:
    create(client)
    create(client, "old")
    client.post("/v1/experiments/old:stop")
    client.post("/v1/experiments/old:archive")
    decide(client)
    folded(client)
    shown = client.get("/v1/overview").json()
    (one,) = shown["experiments"]
    assert (one["name"], one["decisions"], one["leader"], one["share"]) == ("shop", 1, "red", 1.0)
    assert one["converged"]["arm"] is None
    assert shown["demo"] is False
    assert len(client.get("/v1/overview?archived=true").json()["experiments"]) == 2


def test_shares_count_every_decision_in_columns(client: TestClient) -> None:
    create(client)
    empty = read(client, "shares")
    assert (empty["time"], empty["decisions"]) == ([], [[], [], []])
    decide(client, count=70)
    folded(client)
    columns = client.get("/v1/experiments/shop/shares?points=3").json()
    assert len(columns["time"]) <= 3
    assert sum(map(sum, columns["decisions"])) == 70
    assert columns["arms"] == ["red", "green", "blue"]


def test_shares_of_many_decisions_come_from_minutes(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbandits.service import timelines

    create(embedded)
    decide(embedded, count=70)
    fine = read(embedded, "shares")
    monkeypatch.setattr(timelines, "FINE", 10)
    coarse = read(embedded, "shares")
    assert coarse["step_seconds"] == 60
    assert fine["step_seconds"] == 1
    assert [sum(row) for row in coarse["decisions"]] == [sum(row) for row in fine["decisions"]]


def test_the_interval_of_an_estimate_holds_where_stints_close_early() -> None:
    """A stint that closes at a deadline has another length than was planned: the releases share the error."""
    experiment, state, _ = played("adap-ucb", (0.9, 0.1), 400, seed=0)
    for arm in range(2):
        said = estimate(experiment, state, arm)
        assert said is not None
        low, high = said["interval"]
        ends = interval_of_any_stint(state.curator, arm, 0.05, state.version)
        assert low <= ends[0] <= ends[1] <= high
        assert high - low > np.diff(interval(state.curator, arm, 0.05))[0]


def test_an_interval_does_not_leave_the_range_of_the_reward_unless_its_mean_does() -> None:
    for seed in range(20):
        experiment, state, _ = played("adap-ucb", (0.9, 0.1), 2, seed=seed)
        for said in filter(None, (estimate(experiment, state, arm) for arm in range(2))):
            low, high = said["interval"]
            assert low <= said["mean"] <= high
            assert low >= 0.0 or said["mean"] < 0.0
            assert high <= 1.0 or said["mean"] > 1.0
