"""The benchmark: what is compared, how it is scored, and that a user's own policy joins with one flag."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.benchmark import PROBLEMS, TRACKS, benchmark, scored
from dpbandits.benchmark import problems as public
from dpbandits.benchmark import run as running
from dpbandits.benchmark.scores import best_lower
from dpbandits.errors import InputError
from dpbandits.policies import lookup

CENTRAL, LOCAL, LEVELS = TRACKS


def test_every_private_policy_for_unit_rewards_is_in_exactly_one_track() -> None:
    for name in lookup.names():
        factory = lookup.find(name)
        private = lookup.sample(name).guarantee.trust != "none" and not lookup.traits(name).any_reward
        assert sum(running._belongs(factory, track) for track in TRACKS) == int(private), name


def test_every_problem_can_be_made_and_has_one_best_arm() -> None:
    for problem in PROBLEMS:
        means = np.sort(problem.arms.means)
        assert means[-1] > means[-2], problem.name


def test_lower_bounds_are_in_the_unit_of_the_rewards() -> None:
    by_name = {problem.name: problem for problem in PROBLEMS}
    assert best_lower(by_name["C2"], CENTRAL, 0.1, 10**7) == pytest.approx(672, abs=1)
    assert (best_lower(by_name["revenue"], CENTRAL, 0.5, 10**5) or 0.0) > 100.0
    assert best_lower(by_name["C2"], LEVELS, "normal(1,1)", 10**5) is not None


def test_scores_are_ratios_ranks_and_tails() -> None:
    """Two policies on two problems, checked by hand."""
    chosen = [problem for problem in PROBLEMS if problem.name in ("two", "close")]
    given: dict[str, Any] = {"epsilon": 2.0, "horizon": 1000, "runs": 5, "seed": 1, "checkpoints": 1}
    played: dict[tuple[str, str, float | str], dp.Trace] = {
        (name, problem.name, 2.0): dp.simulate(name, arms=problem.arms, **given)
        for name in ("adap-ucb", "dp-klucb")
        for problem in chosen
    }
    found = scored(CENTRAL, played, chosen, 1000)
    assert len(found.entries) == 4
    for entry in found.entries:
        regret = played[entry.policy, entry.problem, 2.0].final_regret
        rivals = [played[name, entry.problem, 2.0].final_regret.mean() for name in ("adap-ucb", "dp-klucb")]
        assert entry.mean == pytest.approx(regret.mean())
        assert entry.to_best == pytest.approx(regret.mean() / min(rivals))
        assert entry.largest == regret.max()
    for score in found.scores:
        ratios = [entry.to_best for entry in found.entries if entry.policy == score.policy]
        assert score.to_best == pytest.approx(np.sqrt(ratios[0] * ratios[1]))
        assert score.rank_low <= score.rank <= score.rank_high
    assert sum(score.wins for score in found.scores) >= 2


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """One problem, one setting, few rounds."""
    costs = ("stint", "bulk", "divergence", "noise", "counter", "arms")
    monkeypatch.setitem(public.SCALES, "quick", public.Scale(10**4, 10**4, dict.fromkeys(costs, 2)))
    monkeypatch.setattr(running, "PROBLEMS", tuple(p for p in PROBLEMS if p.name == "two"))
    levels = public.Track("levels", LEVELS.title, "local", levels=("choice(0,1)",))
    monkeypatch.setattr(running, "TRACKS", (CENTRAL, LOCAL, levels))


@pytest.mark.usefixtures("tiny")
def test_a_user_s_policy_joins_and_the_same_command_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "joining.py").write_text(
        "from dpbandits.agents import LikelihoodIMED\n"
        "from dpbandits.curators import WeightedBernoulli\n"
        "from dpbandits.policies.policy import Parts, published\n"
        "@published('nobody', levels='bernoulli', cost='noise')\n"
        "def mine(arms):\n"
        "    return Parts(LikelihoodIMED.start(arms, correction=0.3), WeightedBernoulli.start(arms))\n"
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    first = benchmark(add=["joining:mine"], tracks=["levels"], out=out, workers=1)
    record = json.loads((out / "benchmark.json").read_text())
    policies = [score["policy"] for score in record["tracks"][0]["scores"]]
    assert "joining:mine" in policies
    assert "heldp-glr-b" in policies
    assert "](figures/benchmark/levels.png)" in (out / "benchmark.md").read_text()
    assert (out / "figures" / "benchmark" / "levels.png").exists()
    assert str(tmp_path) not in (out / "benchmark.json").read_text()
    watched: list[Any] = []
    again = benchmark(add=["joining:mine"], tracks=["levels"], out=out, workers=1, watch=watched.append)
    assert not watched
    assert [s.to_best for s in again[0].scores] == [s.to_best for s in first[0].scores]


def test_an_unknown_track_or_scale_is_refused() -> None:
    with pytest.raises(InputError, match="track"):
        benchmark(tracks=["middle"])
    with pytest.raises(InputError, match="scale"):
        benchmark(scale="huge")
