"""The benchmark: what is compared, how it is scored, and that a user's own policy joins with one flag."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits.agents import Doubling, RootUCB
from dpbandits.benchmark import PROBLEMS, TRACKS, benchmark, scored
from dpbandits.benchmark import problems as public
from dpbandits.benchmark import run as running
from dpbandits.benchmark.scores import CellScore, Scores, best_lower
from dpbandits.curators import GaussianBatch
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published

ROOT = Path(__file__).parents[1]
CENTRAL, LOCAL, LEVELS, ANY_SIZE, ANY_SIZE_LEVELS, NONE = TRACKS


def test_every_policy_is_played_in_its_class() -> None:
    """For rewards in [0, 1] in exactly one track; those for rewards of any size in one for these."""
    for name in lookup.names():
        factory, any_reward = lookup.find(name), lookup.traits(name).any_reward
        unit = [track for track in TRACKS if not track.any_size and running._belongs(factory, track)]
        assert len(unit) == int(not any_reward), name
        any_size = [track for track in (ANY_SIZE, ANY_SIZE_LEVELS) if running._belongs(factory, track)]
        assert len(any_size) == int(any_reward or unit == [LOCAL] or unit == [LEVELS]), name
        assert all(track.trust == lookup.sample(name).guarantee.trust for track in unit), name


@pytest.mark.parametrize("track", TRACKS, ids=lambda track: track.name)
def test_every_policy_of_a_track_can_be_played_on_all_its_problems_and_in_its_tails(track: public.Track) -> None:
    size = public.SCALES["quick"]
    contestants = {name for name, _, _ in running._contestants(track, [])}
    cells, tails = dict(running._cells(track, size, [])), dict(running._tail_cells(track, size, []))
    assert {key[0] for key in cells} == {key[0] for key in tails} == contestants
    assert len(cells) == len(contestants) * len(track.problems) * len(track.settings), "all meet in every cell"
    assert len(tails) == len(contestants) * len(track.tails)
    assert {cell.runs for cell in tails.values()} <= {size.tail_runs, round(size.tail_runs * track.slow_share)}


def test_every_problem_can_be_made_and_has_one_best_arm() -> None:
    for problem in (*PROBLEMS, *public.UNBOUNDED):
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
    played: dict[tuple[str, str, public.PrivacySetting], dp.Trace] = {
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


def entry(policy: str, mean: float, stderr: float) -> CellScore:
    made = lookup.sample("ldp-imed-b")
    return CellScore(policy, "two", 1.0, 10, 100, mean, stderr, mean, mean, mean, mean, mean, 0.0, 1.0, None, 1.0, made)


def test_a_winner_is_named_with_those_that_cannot_be_told_from_it() -> None:
    """Two standard errors of the difference: 3 and 4 make 5, so that 110 is not told from 100, and 111 is."""
    entries = [entry("c", 111.0, 4.0), entry("a", 100.0, 3.0), entry("b", 110.0, 4.0)]
    found = Scores(CENTRAL, 10, entries, [])
    assert [e.policy for e in found.leaders("two", 1.0)] == ["a", "b"]
    assert found.leaders("C1", 1.0) == []


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """One problem, one setting, few rounds."""
    costs = ("stint", "bulk", "divergence", "noise", "counter", "arms")
    monkeypatch.setitem(public.SCALES, "quick", public.Scale(10**4, 10**4, dict.fromkeys(costs, 2), 3))
    two = tuple(problem for problem in PROBLEMS if problem.name == "two")
    levels = "choice(0,1)"
    track = public.Track("levels", LEVELS.title, "local", levels=(levels,), tails=(("two", levels),), problems=two)
    monkeypatch.setattr(running, "TRACKS", (CENTRAL, LOCAL, track))


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
    page = (out / "benchmark.md").read_text()
    for picture in re.findall(r"\]\((figures/benchmark/[a-z-]+\.png)\)", page):
        assert (out / picture).exists(), picture
    assert "](figures/benchmark/wins-levels.png)" in page
    shown = re.findall(r'<img src="(figures/benchmark/[a-z-]+\.svg)" alt="[^"]+"', (out / "report.html").read_text())
    assert shown[1:] == ["figures/benchmark/wins-levels.svg", "figures/benchmark/tails-levels.svg"]
    assert all((out / picture).exists() for picture in shown)
    assert {*shown} <= {*json.loads((out / "settings.json").read_text())["files"]}
    assert "Tails are from 3 runs of 10,000 rounds" in page
    assert {cell["runs"] for cell in record["tails"][0]["cells"]} == {3}
    (mine, *_) = (cell for cell in record["tracks"][0]["cells"] if cell["policy"] == "joining:mine")
    assert (mine["options"], mine["guarantee"]) == ({"arms": 2}, {"epsilon": None, "delta": 0.0})
    assert record["command"] == "dpbandits benchmark --scale quick --track levels --add joining:mine"
    assert record["added"] == ["joining:mine"]
    assert f"Command: `{record['command']}`." in page
    assert f"Every policy that ships for *{LEVELS.title}*, and `joining:mine`, on a fixed public set" in page
    assert "* **two**: " in page
    assert "* **C1**: " not in page
    assert str(tmp_path) not in (out / "benchmark.json").read_text()
    watched: list[Any] = []
    assert "It took " in page
    again = benchmark(add=["joining:mine"], tracks=["levels"], out=out, workers=1, watch=watched.append)
    assert not watched
    assert [s.to_best for s in again[0].scores] == [s.to_best for s in first[0].scores]
    assert "It took " not in (out / "benchmark.md").read_text()
    assert "<dt>time of the last call</dt>" in (out / "report.html").read_text()


@published("a test", cost="stint", delta="delta")
def noisy(arms: int, *, epsilon: float, delta: float = 1e-6) -> Parts:
    """A policy with a weaker promise."""
    agent = Doubling.start(arms, RootUCB.start(arms, alpha=3.1))
    return Parts(agent, GaussianBatch.start(arms, epsilon=epsilon, delta=delta, rho=None))


@pytest.mark.usefixtures("tiny")
def test_all_settings_of_a_policy_are_in_the_document_and_those_that_are_no_defaults_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = tuple(problem for problem in PROBLEMS if problem.name == "two")
    track = public.Track("central", CENTRAL.title, "central", epsilons=(1.0,), tails=(("two", 1.0),), problems=two)
    monkeypatch.setattr(running, "TRACKS", (track,))
    monkeypatch.setattr(lookup, "names", lambda: ["dp-ucb-int", "dp-tt", "dp-imed"])
    benchmark(out=tmp_path, workers=1, add=[noisy])
    cells = json.loads((tmp_path / "benchmark.json").read_text())["tracks"][0]["cells"]
    made = {cell["policy"]: (cell["options"], cell["guarantee"]) for cell in cells}
    assert made["dp-tt"][0]["beta"] == 1e-4
    options, promised = made["dp-ucb-int"]
    assert (options["schedule"], options["delta"], options["horizon"]) == ("exact", 1e-5, 10**4)
    assert promised["delta"] == pytest.approx(1e-5, rel=0.1)
    assert 0 < promised["epsilon"] <= 1.0
    for file in ("benchmark.md", "report.html"):
        text = (tmp_path / file).read_text().replace("`", "")
        rows = re.findall(r"(?:<tr><td>|\| )(dp-[a-z-]+)(?:</td><td>| \| )([a-z_]+=[^<|]*?)(?:</td>| \|)", text)
        assert dict(rows) == {"dp-tt": "beta=0.0001", "dp-ucb-int": "delta=1e-05, schedule=exact"}, file
        weaker = f"dp-ucb-int, dp-ucb-int (cover_noise=true), {lookup.written(noisy)}."
        assert f"a weaker promise than that of all others: {weaker}" in text


def test_an_unknown_track_or_scale_is_refused() -> None:
    with pytest.raises(InputError, match="track"):
        benchmark(tracks=["middle"])
    with pytest.raises(InputError, match="scale"):
        benchmark(scale="huge")


def test_the_page_of_the_documentation_is_of_this_problem_set() -> None:
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert f"Problem set {public.SET_VERSION}, scale `standing`" in text
    assert "Command: `dpbandits benchmark --scale standing`." in text
    assert re.search(r"\nWithout an option it took [\d smin]+ with 2 workers, which had [\d smin]+ of processor", text)
    assert "\nEvery policy that ships, in its class, on a fixed public set of problems" in text
    for track in TRACKS:
        assert f"](figures/benchmark/wins-{track.name}.png)" in text


def test_the_policies_that_lose_least_can_have_disasters_in_every_table_of_tails() -> None:
    """A table in which ten medians cannot be lost would say nothing of tails."""
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    tables = [block.split("\n") for block in text.split("\n\n") if block.split("\n")[0].endswith("| disasters |")]
    assert len(tables) == sum(len(track.tails) for track in TRACKS)
    for table in tables:
        rows = table[2:]
        assert not any("–" in row for row in rows[: len(rows) // 3]), rows


def test_the_page_of_the_policies_says_how_often_those_for_any_reward_fail() -> None:
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("papers/strongest.md", "benchmark.md")]
    said = re.search(r"`(ldp-ts-bs)` had (\d+) disasters, `(ldp-klucb-bs)` (\d+) and `(ldp-imed-bs)` (\d+)\n", pages[0])
    assert said
    for policy, number in zip(said.groups()[::2], said.groups()[1::2], strict=True):
        assert re.findall(rf"\| `{policy}` \| 10,000 \|.*\| (\d+) \|\n", pages[1]) == [number], policy


def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_names_policies_that_are_newer_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Playing all of them takes long, so it is done for a release, and the site says which are missing until then."""
    writers = hooks().WRITERS
    (marker,) = (marker for marker in writers if "newer" in marker)
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert text.count(f"\n{marker}\n") == 1
    missing = [name for name in lookup.names() if f"| `{name}` |" not in text]
    said = "".join(writers[marker]())
    assert [name for name in missing if f"`{name}`" not in said] == []
    versions = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line[:3] == "## "]
    released = "(unreleased)" not in versions[0]
    assert not (released and missing), (
        f"a release has no policy that is not on the page of the benchmark: {missing}. "
        "dpbandits benchmark --scale standing --out out/benchmark && dpbandits benchmark --out out/quick && "
        "python tools/benchmark_page.py out/benchmark out/quick"
    )
    monkeypatch.setattr(lookup, "names", lambda: ["adap-ucb", "adap-greedy"])
    assert "not in them: `adap-greedy`." in "".join(writers[marker]())
