"""Who gets which arm, and with which probability."""

from __future__ import annotations

import csv
import io
import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from calls import create, decide, folded, respond, reward
from starlette.testclient import TestClient

from dpbandits.draws import WatchedGenerator
from dpbandits.policies import lookup
from dpbandits.service import books
from dpbandits.service.books import Ask, LiveRun, choose, foldable
from dpbandits.service.experiment import POLICY, RANDOM, Experiment, Settings
from dpbandits.service.state import LiveState

ARMS = ("red", "green", "blue")


def exported(client: TestClient) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(client.get("/v1/experiments/shop/export.csv").text)))


def experiment_of(name: str, **settings: Any) -> Experiment:
    """An experiment with a policy of this name, whatever that needs."""
    asked: dict[str, Any] = {"name": "shop", "arms": ARMS, "policy": name, "response_window": None, **settings}
    if lookup.traits(name).levels is not None:
        asked["levels"] = ["1"]
    elif lookup.takes(name, "epsilon"):
        asked["epsilon"] = "1"
    if lookup.traits(name).threshold is not None:
        asked["options"] = {lookup.traits(name).threshold: "auto"}
    if lookup.needs_horizon(name):
        asked["horizon"] = 10_000
    return Experiment(1, Settings.model_validate(asked))


@pytest.mark.parametrize("floor", [0.1, 0.3])
@pytest.mark.parametrize("name", lookup.names())
def test_a_propensity_is_the_probability_of_the_arm(name: str, floor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance gives each of 3 arms with the probability ``floor``, and the policy its own arm otherwise.

    Which arm that is, a copy says that is asked before. Where a policy draws lots, its propensities are not known.
    """
    chance, noise = random.Random(1), np.random.default_rng(1)
    monkeypatch.setattr(books, "_chance", chance)
    experiment = experiment_of(name, floor=floor)
    run = LiveRun(experiment, LiveState(experiment.policy, math.inf))
    draws, seen = False, set()
    for step in range(300):
        now, lots, choices = float(step), WatchedGenerator(), WatchedGenerator()
        preferred, _ = run.state.copy().decide(now, noise, lots)
        (made,) = choose(run, run.state, Ask(1, None, b"", 0, 0), False, now, noise, choices)
        if lots.used:
            draws = True
            assert made.propensity is None
        else:
            assert made.propensity == pytest.approx(floor + (1.0 - 3.0 * floor) * (made.arm == preferred))
            seen.add((made.kind, made.arm == preferred))
        if foldable(experiment, made.kind, made.stint):
            run.state.receive(made.arm, made.stint, now, float(chance.random() < 0.5), 1.0, now, noise)
    assert draws or seen == {(POLICY, True), (RANDOM, True), (RANDOM, False)}


@pytest.mark.parametrize("settings", [{}, {"holdout": 0.25, "baseline": "blue"}])
def test_an_export_weighted_by_its_propensities_is_unbiased(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Of the decisions in which every arm was possible, those with one arm, weighted by 1/p, stand for all.

    The responses are all 1, so each arm's estimate is 1. It is off by more than 5 standard errors of the smallest
    probability with a chance below 1e-5, and the seed is fixed.
    """
    monkeypatch.setattr(books, "_chance", random.Random(2))
    create(client, floor=0.1, **settings)
    for _ in range(3):
        for one in decide(client, count=1000)["decisions"][:20]:
            respond(client, one["token"], 1)
        folded(client)
    rows = exported(client)
    assert {row["propensity"] for row in rows if row["chosen_by"] == "holdout"} <= {"1.0"}
    open_ones = [row for row in rows if float(row["propensity"]) < 1.0]
    assert len(open_ones) == sum(row["chosen_by"] != "holdout" for row in rows) > 2000
    for arm in ARMS:
        estimate = sum(1.0 / float(row["propensity"]) for row in open_ones if row["arm"] == arm) / len(open_ones)
        assert estimate == pytest.approx(1.0, abs=5.0 * math.sqrt(9.0 / len(open_ones)))


@pytest.mark.parametrize("settings", [{}, {"floor": 0.3}, {"burn_in": 100}, {"policy": "thompson", "epsilon": None}])
def test_in_shadow_mode_the_baseline_is_certain(client: TestClient, settings: dict[str, Any]) -> None:
    create(client, mode="shadow", baseline="green", **settings)
    made = [*decide(client, count=50)["decisions"], decide(client)]
    assert {(one["arm"], one["propensity"]) for one in made} == {("green", 1.0)}


@pytest.mark.parametrize("policy", ["ldp-ucb-b", "adap-ucb"])
def test_a_lease_goes_on_with_the_policy_after_the_burn_in(client: TestClient, policy: str) -> None:
    create(client, policy=policy, burn_in=10)
    made = [one["propensity"] for one in decide(client, count=1000)["decisions"]]
    assert made == pytest.approx([1 / 3] * 10 + [1.0] * 990)


def test_so_many_decisions_are_by_chance_as_burn_in_says_whoever_is_held_out(client: TestClient) -> None:
    create(client, burn_in=100, holdout=0.5, baseline="red")
    for count in (150, 150, 150):  # fewer than 100 of 450 are not held out with probability 3e-34
        decide(client, count=count)
        folded(client)
    rows = csv.DictReader(io.StringIO(client.get("/v1/experiments/shop/export.csv").text))
    assert Counter(row["chosen_by"] for row in rows)["chance"] == 100


@pytest.mark.parametrize("settings", [{"holdout": 0.5}, {"mode": "shadow"}, {"holdout": 0.5, "floor": 0.2}])
@pytest.mark.parametrize("policy", ["ldp-ucb-b", "adap-ucb"])
def test_a_baseline_that_is_paused_is_given_to_nobody(
    client: TestClient, policy: str, settings: dict[str, Any]
) -> None:
    create(client, policy=policy, baseline="blue", **settings)

    def given(users: int) -> set[str]:
        arms = set()
        for user in range(users):
            one = decide(client, user=f"u{user}")
            arms.add(one["arm"])
            (respond if policy == "ldp-ucb-b" else reward)(client, one["token"], 1)
            folded(client)
        return arms

    assert "blue" in given(20)
    before = folded(client)["holdout"]
    assert client.patch("/v1/experiments/shop", json={"paused_arms": ["blue"]}).status_code == 200
    assert "red" in given(20) <= {"red", "green"}
    assert folded(client)["holdout"] == before  # what is said of the baseline comes from the baseline alone
