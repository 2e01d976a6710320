"""What a newcomer types first, in Python: inputs as people have them, names that can be found, errors in one line."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest
from numba.core.errors import TypingError
from scipy import stats

import dpbandits as dp
import dpbandits.bounds as bounds
from dpbandits.curators import Plain
from dpbandits.environments import Levels, NormalLevels, parse_levels
from dpbandits.environments.distributions import Beta, Coin, Normal, Uniform
from dpbandits.errors import InputError
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.simulation import Simulation, Trace
from dpbandits.simulation.complaints import refused
from dpbandits.types import Rng

COMMON: dict[str, Any] = {"horizon": 500, "runs": 2, "workers": 1}


def pulls(policy: Any = "adap-ucb", **given: Any) -> list[Any]:
    found = dp.simulate(policy, **{"arms": [0.9, 0.5], "epsilon": 1, **COMMON, **given})
    return found.pulls.tolist()


# --- inputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arms",
    [
        "0.9,0.5",
        (0.9, 0.5),
        np.array([0.9, 0.5]),
        {"red": 0.9, "green": 0.5},
        {"red": "bernoulli(0.9)", "green": np.float32(0.5)},
        [dp.arms.bernoulli(0.9), stats.bernoulli(0.5)],
        pandas.Series({"red": 0.9, "green": 0.5}),
        iter([0.9, 0.5]),
    ],
)
def test_arms_are_the_same_however_they_are_given(arms: Any) -> None:
    found, expected = np.array(pulls(arms=arms)), np.array(pulls())
    assert np.array_equal(found, expected)


def test_frozen_distributions_of_scipy_are_arms() -> None:
    given: list[Any] = [
        stats.beta(4, 1),
        stats.uniform(2, 3),
        stats.norm(1, 2),
        stats.bernoulli(0.25),
        stats.randint(1, 4),
    ]
    arms = Simulation.of("ucb1", arms=given, horizon=100, options={"sigmoid": True}).arms
    assert arms.distributions[:4] == (Beta(4, 1), Uniform(2, 5), Normal(1, 2), Coin(0.25))
    assert arms.means == tuple(float(one.mean()) for one in given)
    new = dp.simulate("ucb1", arms=[stats.Normal(mu=1, sigma=2), 0.5], sigmoid=True, **COMMON)
    assert new.means.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    "given",
    [stats.gamma(2), stats.beta(4, 1, loc=1), stats.binom(3, 0.5), stats.norm([0, 1], 1), stats.bernoulli(0.5, 1)],
)
def test_other_distributions_of_scipy_are_refused_with_a_way_out(given: Any) -> None:
    with pytest.raises(InputError) as caught:
        dp.simulate("ucb1", arms=[given, 0.5], **COMMON)
    assert caught.value.parameter == "arms"
    assert "dp.arms.choice" in str(caught.value) or "arrays" in str(caught.value)


def test_a_data_frame_is_a_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"arm": rng.choice(["calm", "question", "shout"], 300), "reward": rng.random(300)})
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    trace = dp.simulate("adap-ucb", arms=frame, epsilon=1, **COMMON)
    for other in (path, str(path), f"replay({path})", dp.arms.replay(frame)):
        assert np.array_equal(dp.simulate("adap-ucb", arms=other, epsilon=1, **COMMON).pulls, trace.pulls)
    assert trace.names == ("calm", "question", "shout")
    trace.save(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="were not saved: give the data frame again as arms"):
        Trace.load(tmp_path / "t.parquet")
    assert np.array_equal(Trace.load(tmp_path / "t.parquet", arms=frame).pulls, trace.pulls)
    with pytest.raises(InputError, match="the data frame has changed since this was written"):
        Trace.load(tmp_path / "t.parquet", arms=frame.iloc[:-1])
    assert not any(f"{reward}" in (tmp_path / "t.parquet").read_text(errors="ignore") for reward in frame.reward[:20])


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pandas.DataFrame({"arm": ["a", "b"], "pay": [1, 2]}), "arms: the data frame: no column reward"),
        (
            pandas.DataFrame({"arm": ["a", None], "reward": [1, 2]}),
            "arms: row 2 of the data frame: the arm has no",
        ),
        (pandas.DataFrame({"arm": ["a", "b"], "reward": [1, "x"]}), "arms: row 2 of the data frame: the reward is not"),
        (pandas.DataFrame({"arm": ["a", "b"], "reward": [1, np.nan]}), "arms: row 2 of the data frame: the reward is"),
        (
            pandas.DataFrame({"arm": ["a", "b"], "reward": [1, 7]}),
            "arms: row 2 of the data frame: the reward is out",
        ),
    ],
)
def test_a_data_frame_that_is_no_log_is_refused_by_row(frame: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        dp.simulate("adap-ucb", arms=frame, epsilon=1, **COMMON)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "policy", ["adap_ucb", "AdaP-UCB", " AdaP UCB ", dp.policies.adap_ucb, dp.policies.adap_ucb(arms=2, epsilon=1.0)]
)
def test_a_policy_is_the_same_however_it_is_given(policy: Any) -> None:
    made = not isinstance(policy, str) and not callable(policy)
    assert pulls(policy, epsilon=None if made else 1) == pulls()


def test_a_policy_that_is_made_keeps_its_own_settings() -> None:
    made = dp.policies.adap_ucb(arms=2, epsilon=1.0, alpha=1.0)
    assert pulls(made, epsilon=None) == pulls(alpha=1)
    for given, message in (
        ({"epsilon": 2}, "policy is an instance: set epsilon where it is made, got 2"),
        ({"alpha": 2, "epsilon": None}, "policy is an instance: set options where it is made"),
        ({"arms": [0.1, 0.2, 0.3], "epsilon": None}, "arms must be 2 for this adap-ucb, got 3"),
    ):
        with pytest.raises(InputError, match=message):
            pulls(made, **given)
    moss = dp.policies.adap_moss(arms=2, epsilon=1.0, horizon=1000)
    with pytest.raises(InputError, match="horizon is 1000 rounds for this adap-moss, got 500"):
        pulls(moss, epsilon=None)


def test_options_are_keywords() -> None:
    assert pulls(alpha=1) == pulls(options={"alpha": 1}) == pulls(alpha=np.float64(1)) == pulls(alpha="1") != pulls()


@pytest.mark.parametrize("epsilon", ["1", "1/1", " 1.0 ", np.int64(1), np.float32(1), np.float64(1), True + 0])
def test_numbers_are_the_same_however_they_are_written(epsilon: Any) -> None:
    assert pulls(epsilon=epsilon) == pulls()
    assert pulls(horizon="5e2", runs="2", checkpoints=np.int64(100), seed=np.int64(0), workers=-1) == pulls()
    assert dp.Session("adap-ucb", arms=2, epsilon=epsilon if epsilon != " 1.0 " else "1").guarantee.epsilon == 1


def test_a_seed_that_is_none_is_drawn_and_shown() -> None:
    one, two = (dp.simulate("thompson", arms=[0.9, 0.5], seed=None, **COMMON) for _ in range(2))
    assert one.simulation.seed != two.simulation.seed
    assert f"seed {one.simulation.seed}" in repr(one)
    assert one.to_json()["seed"] == one.simulation.seed
    again = dp.simulate("thompson", arms=[0.9, 0.5], seed=one.simulation.seed, **COMMON)
    assert np.array_equal(again.pulls, one.pulls)


@pytest.mark.parametrize("levels", [[0, 1, 2], (2, 1, 0), np.array([0, 1, 2]), "choice(0,1,2)", Levels.of([0, 1, 2])])
def test_levels_are_a_list(levels: Any) -> None:
    options = {"epsilon": None, "epsilon_min": 1}
    assert pulls("heldp-ucb-b", levels=levels, **options) == pulls("heldp-ucb-b", levels=[0, 1, 2], **options)


def test_a_population_keeps_its_highest_level_in_its_text() -> None:
    for population in (NormalLevels(1, 1, high=3), NormalLevels(1, 1)):
        assert parse_levels(str(population)) == population
    made = Simulation.of(
        "heldp-ucb-b", arms=[0.9, 0.5], horizon=9, levels=NormalLevels(1, 1, 3), options={"epsilon_min": 1}
    )
    assert Simulation.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"arms": 3}, "arms"),
        ({"arms": [[0.1], [0.2]]}, "arms"),
        ({"arms": "1000000000*bernoulli(0.5)"}, "arms"),
        ({"arms": {("a", 1): 0.5, "b": 0.4}}, "arms"),
        ({"arms": b"0.5,0.4"}, "arms"),
        ({"horizon": None}, "horizon"),
        ({"horizon": [100]}, "horizon"),
        ({"epsilon": "one"}, "epsilon"),
        ({"epsilon": [1]}, "epsilon"),
        ({"epsilon": "1/0"}, "epsilon"),
        ({"levels": ["a"], "policy": "heldp-ucb-b", "epsilon": None, "epsilon_min": 1}, "levels"),
        ({"levels": [None], "policy": "heldp-ucb-b", "epsilon": None, "epsilon_min": 1}, "levels"),
        ({"levels": 1, "policy": "heldp-ucb-b", "epsilon": None, "epsilon_min": 1}, "levels"),
        ({"levels": {}, "policy": "heldp-ucb-b", "epsilon": None, "epsilon_min": 1}, "levels"),
        ({"reward_range": [None, 1]}, "reward_range"),
        ({"reward_range": 1}, "reward_range"),
        ({"reward_range": "0,1,2"}, "reward_range"),
        ({"options": ["alpha=2"]}, "options"),
        ({"options": "alpha=2"}, "options"),
        ({"alpha": "x"}, "alpha"),
        ({"alpha": [1]}, "alpha"),
        ({"rnus": 3}, "rnus"),
        ({"policy": None}, "policy"),
        ({"policy": 3}, "policy"),
        ({"policy": ["adap-ucb"]}, "policy"),
        ({"policy": "no_module:f"}, "policy"),
        ({"policy": "json:dumps"}, "policy"),
        ({"policy": "math:pi"}, "policy"),
        ({"engine": None}, "engine"),
        ({"engine": "gpu?"}, "engine"),
        ({"progress": True}, "progress"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"runs": 0}, "runs"),
        ({"runs": None}, "runs"),
        ({"workers": 0}, "workers"),
        ({"workers": "many"}, "workers"),
        ({"checkpoints": "some"}, "checkpoints"),
        ({"checkpoints": [1, None]}, "checkpoints"),
        ({"delay": 3}, "delay"),
        ({"loss": "half"}, "loss"),
        ({"window": []}, "window"),
        ({"arm_order": 1}, "arm_order"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_name_of_the_parameter(given: dict[str, Any], parameter: str) -> None:
    with pytest.raises(InputError) as caught:
        dp.simulate(**{"policy": "adap-ucb", "arms": [0.9, 0.5], "epsilon": 1, **COMMON, **given})
    assert caught.value.parameter == parameter
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_plan_and_bounds_take_the_same_arms() -> None:
    for arms in ([0.9, 0.6], {"red": 0.9, "green": 0.6}, np.array([0.9, 0.6]), [stats.bernoulli(0.9), 0.6]):
        found = dp.bounds(arms, horizon="1e4", epsilon="1")
        assert found["lai-robbins"].value == dp.bounds("0.9,0.6", horizon=10_000, epsilon=1)["lai-robbins"].value
        plan = dp.plan(arms, horizon=2000, epsilon=1, runs=2, policies=["adap-ucb"], workers=1)
        assert plan.best(1.0) is not None
    assert dp.bounds([0.9, 0.6], horizon=1000, levels=[0, 1]).problem.levels == Levels.of([0, 1])
    with pytest.raises(InputError, match="epsilon or levels is required by bounds"):
        dp.bounds([0.9, 0.6], horizon=1000)
    with pytest.raises(InputError, match="problem must be a Problem"):
        bounds.applicable(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="alhpa is not an option of a bound"):
        dp.bounds([0.9, 0.6], horizon=1000, epsilon=1, alhpa=2)


def test_plan_takes_what_simulate_takes() -> None:
    common: dict[str, Any] = {"arms": [0.9, 0.6], "runs": 2, "workers": 1}
    plan = dp.plan(horizon="2e3", epsilon=[0.5, 2], policies="AdaP_UCB", seed=None, **common)
    assert plan.question.epsilons == (0.5, 2.0)
    assert plan.question.policies == ("adap-ucb",)
    assert f"seed {plan.question.seed}" in repr(plan)
    assert dp.plan(horizon=2000, epsilon="1", policies=[dp.policies.adap_ucb], **common).focus == 1.0
    for given, parameter in (
        ({"horizont": 5}, "horizont"),
        ({"horizon": [5]}, "horizon"),
        ({"epsilon": ["a"]}, "epsilon"),
        ({"policies": [None]}, "policy"),
        ({"policies": dp.policies.adap_ucb(arms=2, epsilon=1.0)}, "policy"),
    ):
        with pytest.raises(InputError) as caught:
            dp.plan(**{"horizon": 2000, "epsilon": 1, **common, **given})
        assert caught.value.parameter == parameter
        assert "\n" not in str(caught.value)


# --- names of arms --------------------------------------------------------------------------------------------------


def test_which_banner_won() -> None:
    trace = dp.simulate("imed", arms={"calm": 0.2, "question": 0.3, "shout": 0.9}, horizon=2000, runs=20)
    assert trace.best_arms == ("shout",)
    assert f"the best arm is shout, played most in {trace.found} of 20 runs" in repr(trace)
    assert trace.found >= 19
    record = trace.to_json()
    assert record["names"] == ["calm", "question", "shout"]
    assert record["final"]["best_arm"] == "shout"
    assert record["final"]["best_arm_found"] == trace.found
    assert record["final"]["pulls"]["shout"] == record["final"]["pulls_mean"][2]
    assert [name for name in trace.to_pandas().columns if name.startswith("pulls")] == [
        "pulls_calm",
        "pulls_question",
        "pulls_shout",
    ]


def test_names_survive_the_file(tmp_path: Path) -> None:
    trace = dp.simulate("imed", arms={"calm": 0.2, "shout": 0.9}, **COMMON)
    trace.save(tmp_path / "t.parquet")
    loaded = Trace.load(tmp_path / "t.parquet")
    assert loaded.names == ("calm", "shout")
    assert np.array_equal(loaded.pulls, trace.pulls)
    for name in ("t.csv", "t.json"):
        with pytest.raises(InputError, match=r"path must end in \.parquet"):
            trace.save(tmp_path / name)


def test_several_best_arms_are_all_named() -> None:
    trace = dp.simulate("ucb1", arms={"a": 0.9, "b": 0.9, "c": 0.1}, **COMMON)
    assert "the best arms are a, b, played most in 2 of 2 runs; they got" in repr(trace)
    assert trace.to_json()["final"]["best_arm"] == ["a", "b"]


# --- discoverable ---------------------------------------------------------------------------------------------------


def test_dir_shows_what_there_is() -> None:
    for name in ("simulate", "plan", "compare", "bounds", "audit", "Session", "policies", "arms"):
        assert name in dir(dp)
        assert getattr(dp, name) is not None
    assert not any(name in dir(dp) for name in ("annotations", "importlib", "TYPE_CHECKING", "Any"))
    assert callable(dp.audit.verify)
    assert callable(dp.audit.attack)


def test_in_a_fresh_process_every_name_is_there_and_a_wrong_one_is_not() -> None:
    code = (
        "import dpbandits as dp\n"
        "for name in dp.__all__: getattr(dp, name)\n"
        "assert callable(dp.bounds) and dp.bounds.Problem and dp.policies.ucb1\n"
        "try: dp.simulat\n"
        "except AttributeError as error: assert 'did you mean simulate' in str(error), error\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_itself_imports_nothing_heavy() -> None:
    code = "import dpbandits, sys; print([m for m in ('numpy', 'scipy', 'numba', 'click') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_type_checkers_know_every_name(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text(
        "import dpbandits as dp\n"
        "trace = dp.simulate('adap-ucb', arms=[0.9, 0.5], epsilon='1', horizon=1000, alpha=2, seed=None)\n"
        "trace.found + 1\n"
        "dp.compare(['ucb1'], arms=[0.9, 0.5], horizon=1000).plot()\n"
        "dp.plan([0.9, 0.5], horizon=1000, epsilon=1).focus + 1\n"
        "dp.bounds([0.9, 0.5], horizon=1000, epsilon=1).lower()\n"
        "dp.Session('ldp-ucb-b', arms=['a', 'b'], epsilon='1').ask().propensity\n"
        "dp.arms.beta(4, 1).mean + 1\n"
        "dp.policies.adap_ucb(2, epsilon=1.0).guarantee\n"
        "dp.nope\n"
    )
    command = [sys.executable, "-m", "mypy", str(page)]  # other options would check the whole package again
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'page.py:10: error: Module has no attribute "nope"' in errors[0]


def shown() -> dict[str, Any]:
    trace = dp.simulate("adap-ucb", arms={f"a long name of arm {n}": n / 40 for n in range(30)}, epsilon=1, **COMMON)
    plan = dp.plan([0.9, 0.5], horizon=1000, epsilon=1, runs=2, policies=["adap-ucb", "ldp-ucb-b"], workers=1)
    policy = dp.policies.dp_ucb_int(arms=5, epsilon=1.0, schedule="exact", horizon=100)
    verdict = dp.audit.verify(dp.policies.adap_ucb(arms=2, epsilon=1.0), horizon=3)
    return {
        "Trace": trace,
        "Plan": plan,
        "Policy": policy,
        "Guarantee": policy.guarantee,
        "Session": dp.Session("ldp-ucb-b", arms=30, epsilon=1),
        "Verdict": verdict,
        "Bounds": dp.bounds([0.9, 0.5], horizon=1000, epsilon=1),
    }


def test_values_show_themselves_in_five_lines_and_with_a_curve_in_notebooks() -> None:
    for name, value in shown().items():
        lines = repr(value).splitlines()
        assert 1 <= len(lines) <= 5, f"{name}: {len(lines)} lines"
        assert lines[0].startswith(name)
        assert " at 0x" not in repr(value)
        if name != "Guarantee":
            assert max(map(len, lines)) <= 130, f"{name}: {max(lines, key=len)}"
        page = value._repr_html_()
        assert page.startswith("<div>")
        assert "<svg" in page, name


def test_names_are_escaped_in_notebooks() -> None:
    trace = dp.simulate("imed", arms={"<b>": 0.2, "<script>": 0.9}, **COMMON)
    assert "<script>" not in trace._repr_html_()
    assert "<script>" not in dp.compare([trace])._repr_html_()
    assert "<script>" not in dp.Session("ucb1", arms=["<script>", "b"])._repr_html_()
    policy = dataclasses.replace(dp.policies.ldp_ucb_b(arms=2, epsilon=1.0), name="<b>")
    assert "&lt;b&gt;" in policy._repr_html_()
    assert "<b>" not in policy._repr_html_()


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (
            Guarantee.local(1.0),
            "Local differential privacy with epsilon 1 for one reward, against whoever sees",
        ),
        (Guarantee.central(0.5, 1e-6), "Central differential privacy with epsilon 0.5 and delta 1e-06 for one reward"),
        (Guarantee.local(None), "Local differential privacy with each user's own epsilon for one reward"),
        (Guarantee.none(), "No privacy is promised"),
    ],
)
def test_a_guarantee_is_a_sentence(promise: Guarantee, words: str) -> None:
    assert str(promise).startswith(words)
    assert str(promise).endswith(".")
    assert "\n" not in str(promise)


# --- own policies ---------------------------------------------------------------------------------------------------


class First(NamedTuple):
    """An agent that only plain Python can play."""

    name: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return len("{}".format(self.name)) - 1, 1, NO_LINE  # noqa: UP032 - the compiler refuses this at once


class Holding(NamedTuple):
    names: dict[str, int]

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return 0, 1, NO_LINE


@published("a test")
def first(arms: int) -> Parts:
    return Parts(First(7), Plain.start(arms))


@published("a test")
def holding(arms: int) -> Parts:
    return Parts(Holding({}), Plain.start(arms))


def test_what_the_compiler_refuses_is_one_line_with_a_way_out() -> None:
    for policy, where in (
        (first, "test_first_contact.py line "),
        (holding, "Holding.names must be a number"),
    ):
        with warnings.catch_warnings(action="ignore"), pytest.raises(InputError) as caught:
            dp.simulate(policy, arms=[0.9, 0.5], **COMMON)
        text = str(caught.value)
        assert text.startswith(f"policy {policy.__name__} cannot be compiled: ")
        assert where in text
        assert text.endswith("or use engine='python'")
        assert not {"\n", "\x1b"} & set(text)
        assert len(text) < 400
        assert caught.value.__cause__ is None
        assert dp.simulate(policy, arms=[0.9, 0.5], engine="python", **COMMON).runs == 2


def test_the_colours_of_the_compiler_are_left_out() -> None:
    said = TypingError("\x1b[1m\x1b[1mcannot cast\x1b[0m\x1b[0m")
    assert str(refused(said, "mine", [First(0)])).startswith("policy mine cannot be compiled: cannot cast; write it")


def test_a_module_that_cannot_be_imported_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_policy.py").write_text("def f(:\n")
    (tmp_path / "failing_policy.py").write_text("raise RuntimeError('two\\nlines')\n")
    monkeypatch.chdir(tmp_path)
    for name in ("broken_policy", "failing_policy"):
        with pytest.raises(InputError, match=f"policy '{name}:f' cannot be imported: ") as caught:
            dp.simulate(f"{name}:f", arms=[0.9, 0.5], **COMMON)
        assert "\n" not in str(caught.value)


def test_an_epoch_longer_than_any_run_ends_with_the_run() -> None:
    """A factor of 1e300 made an epoch that compiled code could not count."""
    settings: dict[str, Any] = {"arms": [0.9, 0.5], "epsilon": 1, "epoch_factor": 1e300, **COMMON}
    quick, plain = (dp.simulate("dp-se", engine=engine, **settings) for engine in ("compiled", "python"))
    assert np.array_equal(quick.pulls, plain.pulls)


def test_help_shows_what_there_is() -> None:
    code = "import pydoc, dpbandits; print(pydoc.plain(pydoc.render_doc(dpbandits)))"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("simulate(", "compare(", "plan(", "class Session"):
        assert name in text


def test_traces_can_be_asked_whether_they_are_the_same() -> None:
    one, two = (dp.simulate("imed", arms=[0.9, 0.5], **COMMON) for _ in range(2))
    assert one == one
    assert (one == two) is False
