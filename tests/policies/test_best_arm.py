"""Policies that find the best arm and stop: they err as rarely as they promise, and say so when they do not stop."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.agents import BitsTest, SumsTest, TopTwo
from dpbandits.bounds import Problem
from dpbandits.bounds.identification import rounds_to_know, rounds_to_know_from_bits
from dpbandits.curators import Batch, LocalBernoulli
from dpbandits.errors import InputError
from dpbandits.numerics import chernoff, evidence_between
from dpbandits.policies import lookup
from dpbandits.protocols import Releases
from dpbandits.simulation import Trace
from dpbandits.types import Integers

STOPPING = [name for name in lookup.names() if lookup.traits(name).stops]
HARD = {
    "close arms": ("0.5,0.48", 1.0),
    "arms at 0 and 1": ("1,0", 1.0),
    "a best arm at 1": ("1,0.95", 1.0),
    "a worse arm at 0": ("0.05,0", 1.0),
    "many arms": ("0.7," + ",".join(["0.5"] * 11), 1.0),
    "tiny epsilon": ("0.8,0.2", 0.02),
    "rewards between 0 and 1": ("choice(0.4,1)+choice(0.2,0.9)+uniform(0,1)", 1.0),
}
RUNS = 200


def most_wrong(beta: float, runs: int, failure: float) -> int:
    """A policy that errs with probability ``beta`` errs more often than this with probability at most ``failure``."""
    from scipy.stats import binom

    return int(binom.isf(failure, runs, beta))


@pytest.mark.parametrize("name", STOPPING)
@pytest.mark.parametrize("problem", HARD)
def test_a_wrong_arm_is_named_as_rarely_as_promised(name: str, problem: str) -> None:
    """A policy that errs in 20 % of the runs, as it may, fails here with probability at most 1e-6 for each of 28."""
    arms, epsilon = HARD[problem]
    horizon = 10**5 if "uniform" in arms else 10**10  # sums of uniform rewards are drawn one by one
    trace = dp.simulate(name, arms=arms, epsilon=epsilon, horizon=horizon, runs=RUNS, checkpoints=1, beta=0.2, seed=3)
    stops = trace.stops
    assert stops is not None
    assert stops.unfinished == 0
    assert stops.wrong <= most_wrong(0.2, RUNS, 1e-6)
    assert stops.right + stops.wrong == RUNS
    assert (trace.pulls[:, -1].sum(axis=1) == horizon).all()


@pytest.mark.parametrize("name", STOPPING)
def test_an_instance_on_which_luck_looks_like_evidence(name: str) -> None:
    """Two equal arms and one below: nothing wrong is named, and most runs rightly never end (failure below 1e-6)."""
    trace = dp.simulate(name, arms="0.5,0.5,0.4", epsilon=1, horizon=10**7, runs=RUNS, checkpoints=1, beta=0.1)
    stops = trace.stops
    assert stops is not None
    assert stops.wrong <= most_wrong(0.1, RUNS, 1e-6)
    assert stops.unfinished > RUNS // 2
    assert stops.quantile(0.95) is None


def test_the_test_of_error_rates_can_fail() -> None:
    """A test that asks for a tenth of the evidence errs too often, and is seen to."""

    class Careless(SumsTest):
        def needed(self, releases: Releases, better: int, worse: int, batches: Integers) -> float:
            return 0.1

    wrong = 0
    for run in range(60):
        agent = TopTwo.start(2, Careless.start(2, epsilon=1.0, beta=0.2), ratio=2.0, first=2)
        curator, rng, t = Batch.start(2, epsilon=1.0), np.random.default_rng(run), 0
        while not agent.named.any():
            arm, stint, _ = agent.act(curator, t + 1, rng)
            for _ in range(min(stint, 10_000)):
                curator.add(arm, float(rng.random() < (0.5, 0.48)[arm]), 0.0, rng)
            curator.close(arm, rng)
            t += stint
        wrong += int(agent.named[1] > 0)
    assert wrong > most_wrong(0.2, 60, 1e-6)


@pytest.mark.parametrize("name", STOPPING)
def test_a_run_that_does_not_stop_is_not_counted_as_right(name: str) -> None:
    trace = dp.simulate(name, arms="0.5,0.499", epsilon=1, horizon=2000, runs=5, beta=0.05)
    stops = trace.stops
    assert stops is not None
    assert (stops.stopped, stops.unfinished, stops.right, stops.wrong) == (0, 5, 0, 0)
    record = json.loads(json.dumps(trace.to_json(), allow_nan=False))["stops"]
    assert record["rounds"] == {"mean": None, "max": None, "quantiles": {"0.05": None, "0.5": None, "0.95": None}}
    assert record["right"] == 0
    assert "by the horizon" in str(stops)


def test_other_policies_have_no_stops() -> None:
    trace = dp.simulate("adap-ucb", arms="0.9,0.6", epsilon=1, horizon=1000, runs=2)
    assert trace.stops is None
    assert "stops" not in trace.to_json()


def test_what_is_named_is_played_for_ever_and_the_trace_keeps_it(tmp_path: Path) -> None:
    trace = dp.simulate("dp-tt", arms={"a": 0.5, "b": 0.8, "c": 0.2}, epsilon=1, horizon=20_000, runs=8, seed=2)
    assert trace.stops is not None
    assert trace.named is not None
    stopped = trace.named.max(axis=1)
    late = trace.checkpoints >= stopped.max()
    assert (np.diff(trace.pulls[:, late, 1], axis=1) == np.diff(trace.checkpoints[late])).all()  # b, in any order
    trace.save(tmp_path / "trace.parquet")
    again = Trace.load(tmp_path / "trace.parquet")
    assert again.stops is not None
    assert again.to_json()["stops"] == trace.to_json()["stops"]
    table = trace.to_pandas()
    assert set(table["named"]) == {"b"}
    assert table.groupby("run")["stopped"].first().tolist() == stopped.tolist()
    half = trace.only(np.array([0, 3]))
    assert half.stops is not None
    assert half.stops.runs == 2


def test_a_comparison_keeps_the_stops() -> None:
    traces = dp.compare(["dp-tt", "adap-ucb"], arms="0.9,0.6", epsilon=1, horizon=2000, runs=4)
    stops = [trace.stops for trace in traces.values()]
    assert [one is None for one in stops] == [False, True]


@pytest.mark.parametrize("name", STOPPING)
def test_delayed_responses_are_no_evidence_before_they_have_come(name: str) -> None:
    """With a long delay, a run stops later, and errs no more often (failure below 1e-6)."""
    given: dict[str, Any] = {
        "arms": "0.9,0.3",
        "epsilon": 2,
        "horizon": 20_000,
        "runs": 40,
        "checkpoints": 1,
        "beta": 0.1,
    }
    prompt = dp.simulate(name, **given)
    late = dp.simulate(name, **given, delay="constant(1000)", window=3000)
    assert prompt.stops is not None
    assert late.stops is not None
    assert late.stops.wrong <= most_wrong(0.1, 40, 1e-6)
    assert late.stops.rounds.min() > 1000
    assert np.median(late.stops.rounds) > np.median(prompt.stops.rounds)


def test_a_session_says_when_it_knows() -> None:
    session = dp.Session("ctb-tt", arms=["red", "green"], epsilon=4, noise="simulated", seed=1)
    assert session.evidence == {"red": 0.0, "green": 0.0}
    while session.winner is None:
        decision = session.ask()
        reward = 1 if decision.arm == "green" else 0
        session.tell(decision, session.device().respond(decision, reward))
        assert session.rounds < 1000
    assert session.winner.arm == "green"
    assert session.winner.confidence == 0.95
    assert session.winner.rounds == session.rounds - 1
    assert session.evidence is not None
    assert session.evidence["red"] >= 1.0
    assert session.evidence["green"] == 0.0
    assert "the best arm is known: green" in repr(session)
    again = dp.Session.thaw(session.freeze())
    assert again.winner == session.winner
    assert {again.ask().arm for _ in range(20)} == {"green"}
    with pytest.raises(InputError, match="cannot be paused"):
        again.pause("red")


def test_a_session_of_another_policy_never_knows() -> None:
    session = dp.Session("adap-ucb", arms=2, epsilon=1)
    assert session.winner is None
    assert session.evidence is None


def test_chernoff_is_a_bound_on_the_probability() -> None:
    """The exact tail of a binomial sum plus Laplace noise, by summation, is below e^-x everywhere."""
    from scipy.stats import binom, laplace

    for n, p, epsilon in ((1, 0.5, 1.0), (20, 0.05, 0.3), (50, 0.9, 2.0), (200, 0.5, 0.1)):
        counts = np.arange(n + 1)
        weights = binom.pmf(counts, n, p)
        for mean in np.linspace(p + 0.01, p + 1.5, 25):
            exact = float((weights * laplace.sf(mean * n - counts, scale=1.0 / epsilon)).sum())
            x, slope, _ = chernoff(n, float(mean), p, 1.0, epsilon)
            assert exact <= math.exp(-x) + 1e-12
            step = (chernoff(n, float(mean), p + 1e-6, 1.0, epsilon)[0] - x) / 1e-6
            assert slope == pytest.approx(step, rel=1e-3, abs=1e-2)


def test_evidence_is_the_least_over_all_common_means() -> None:
    for n, high, m, low, epsilon in ((100, 0.7, 50, 0.3, 1.0), (1000, 0.06, 400, 0.01, 0.2), (30, 1.3, 30, -0.2, 0.5)):
        grid = np.linspace(max(low, 0.0) + 1e-9, min(high, 1.0) - 1e-9, 4001)
        totals = [
            chernoff(n, high, float(u), 2.0, epsilon)[0] + chernoff(m, 1.0 - low, 1.0 - float(u), 1.0, epsilon)[0]
            for u in grid
        ]
        found = evidence_between(n, high, 2.0, m, low, 1.0, epsilon)
        assert found <= min(totals)
        assert found == pytest.approx(min(totals), abs=1e-3)


def test_the_mixture_of_krichevsky_and_trofimov_is_within_two_root_n() -> None:
    """What the threshold of the bits rests on: max likelihood over the mixture is at most 2 sqrt n, for all counts."""
    for n in (1, 2, 3, 10, 57, 400):
        for ones in range(n + 1):
            mixture = math.lgamma(ones + 0.5) + math.lgamma(n - ones + 0.5) - math.lgamma(n + 1.0) - math.log(math.pi)
            best = sum(k * math.log(k / n) for k in (ones, n - ones) if k)
            assert best - mixture <= math.log(2.0 * math.sqrt(n)) + 1e-9
    needed = BitsTest.start(3, beta=0.1)
    curator, rng = LocalBernoulli.start(3, epsilon=1.0), np.random.default_rng(0)
    for arm in (0, 1):
        for _ in range(50):
            curator.add(arm, 1.0, 0.0, rng)
    threshold = needed.needed(curator, 0, 1, np.zeros(3, np.int64))
    assert threshold == pytest.approx(math.log(2 / 0.1) + math.log(2.0 * math.sqrt(50)) * 2)
    assert threshold <= math.log(2 * 100 * 2 / 0.1)  # Garivier & Kaufmann 2016, Theorem 10


@pytest.mark.parametrize("means", [[0.75, 0.625, 0.5], [0.9, 0.6], [0.6, 0.5, 0.5, 0.4]])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_nobody_stops_before_the_lower_bound(means: list[float], epsilon: float) -> None:
    """40 runs; a policy whose mean is the bound would be refused with probability below 1e-6, and these are above."""
    problem = Problem.bernoulli(means, 10**9, epsilon=epsilon)
    for name in STOPPING:
        bound = (rounds_to_know_from_bits if name == "ctb-tt" else rounds_to_know)(problem, 0.05)
        trace = dp.simulate(name, arms=means, epsilon=epsilon, horizon=10**9, runs=40, checkpoints=1, beta=0.05)
        assert trace.stops is not None
        rounds = trace.stops.rounds
        assert rounds.mean() + 5.0 * rounds.std() / math.sqrt(40) >= bound


@pytest.mark.parametrize("name", ["adap-tt", "dp-tt", "ctb-tt"])
@pytest.mark.parametrize(("option", "value"), [("beta", 0.0), ("beta", 1.0), ("beta", -1.0), ("ratio", 1.0)])
def test_bad_options_are_refused(name: str, option: str, value: float) -> None:
    with pytest.raises(InputError, match=option):
        lookup.make(name, arms=2, epsilon=1.0, given={option: value})
