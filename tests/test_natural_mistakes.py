"""What a newcomer does, which once hung, was misread in silence, showed a reward, or was called an error of ours."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpbandits as dp
from dpbandits import policies
from dpbandits.agents import UCB
from dpbandits.audit.curators import EXACT
from dpbandits.curators import Plain
from dpbandits.curators.common import Local
from dpbandits.environments import Arms
from dpbandits.errors import InputError
from dpbandits.experiments.comparison import read_comparison
from dpbandits.planning import ask
from dpbandits.planning.knowing import know
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published

Command = Callable[..., tuple[int, str, str]]
SECRET = "0.7312"  # a reward, which no message may show


def test_a_plan_for_coins_in_a_wider_range_ends() -> None:
    """Mapped to [0, 1], the rewards are no longer 0 and 1, and cannot be drawn many at a time."""
    found = know(ask("0.9,0.3", horizon=1000, runs=2, reward_range=(0, 2)), "central", 1.0)
    assert found is not None
    assert found.runs == 2


def test_a_plan_on_a_log_does_not_advise_its_largest_reward(tmp_path: Path, dpbandits: Command) -> None:
    log = tmp_path / "log.csv"
    log.write_text("arm,reward\ncalm,0\ncalm,1\nshout,17.25\nshout,0\n")
    status, out, err = dpbandits(
        "plan", "--arms", str(log), "--horizon", "1e3", "--epsilon", "1", "--policy", "adap-ucb", "--runs", "2"
    )
    assert status == 0, err
    assert "--reward-range LOW,HIGH" in " ".join(out.split())
    assert "17.25" not in out + err


@pytest.mark.parametrize("line", ["calm;0.7312", "calm\t0.7312", "calm|0.7312", "calm,$0.7312", '{"calm": 0.7312}'])
def test_a_log_without_names_of_columns_does_not_show_its_first_reward(tmp_path: Path, line: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"{line}\n")
    with pytest.raises(InputError, match="no column arm and no column reward") as caught:
        Arms.of(log)
    assert SECRET not in str(caught.value)
    assert ("separated by commas" in str(caught.value)) is ("," not in line)


def test_samples_in_the_place_of_arms_are_not_shown() -> None:
    with pytest.raises(InputError, match="must be means or distributions, got a list: give rewards as") as caught:
        dp.simulate("imed", arms={"calm": [float(SECRET), 0.25], "shout": [0.9]}, horizon=100)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("arm,reward\nä,1\nö,0\n".encode("latin-1"), "line 2 of .*: the name of the arm is no text in UTF-8: save"),
        (b"arm,reward\ncalm,1\ncalm,0,5\n", "line 3 of .* has 3 fields, and line 1 has 2: is there a comma in"),
        (b"arm,reward,reward\ncalm,1,0\n", "line 1 of .*: must have one column reward, got 2"),
        (b'arm,reward\n"calm,1\n' + b"shout,0\n" * 30_000, "cannot be read: is a quotation mark not closed"),
    ],
)
def test_a_log_that_would_be_misread_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Arms.of(log)


def test_what_does_not_matter_in_a_log_is_passed_over(tmp_path: Path) -> None:
    """Empty fields after the last column, and a text in another encoding in another column."""
    log = tmp_path / "log.csv"
    log.write_bytes("arm,reward,note1\ncalm,1,ä,\nshout,0,, ,\t\n".encode("latin-1"))
    assert Arms.of(log).names == ("calm", "shout")


@pytest.mark.parametrize("name", ["replay(1).csv", "my_replay(old)+x.csv", "a)+b.csv"])
def test_a_log_may_have_any_name(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_text("arm,reward\ncalm,1\nshout,0\n")
    assert Arms.of(f"{log}").names == Arms.of(f"replay({log})").names == ("calm", "shout")


@pytest.mark.parametrize("head", ["arm,reward2", "name,user_1"])
def test_names_of_columns_are_shown(tmp_path: Path, head: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"{head}\ncalm,1\n")
    with pytest.raises(InputError, match=head.replace(",", ", ")):
        Arms.of(log)


@pytest.mark.parametrize("kind", ["string", "Int64"])
def test_an_arm_that_is_missing_in_a_data_frame_is_named_by_its_row(kind: str) -> None:
    values: Any = pd.array(["1", None, "2"], dtype="string")
    frame = pd.DataFrame({"arm": values.astype(kind), "reward": [1, 0, 1]})
    with pytest.raises(InputError, match="row 2 of the data frame: the arm has no name"):
        Arms.of(frame)


@pytest.mark.parametrize("text", ["replay()+0.5", "replay(a.csv)+0.5", "replay(a.csv) + bernoulli(0.5)", "replay()"])
def test_a_log_stands_alone(text: str) -> None:
    with pytest.raises(InputError, match=r"a log stands alone, as replay\(FILE\), got"):
        Arms.of(text)


@pytest.mark.parametrize("text", ["0.9+0.6", "log.txt", "0.9 0.6", "bernoulli(.9)+.6"])
def test_arms_that_cannot_be_read_are_told_their_forms(text: str) -> None:
    with pytest.raises(InputError, match=r"cannot read .*: they are means as in 0.9,0.6, terms as in"):
        Arms.of(text)


def _made(parts: Any) -> Any:
    @published("nobody yet")
    def made(arms: int) -> Parts:
        """A policy of one's own.

        Reference: none.
        Guarantee: none.
        """
        return parts

    return made


class NotATuple:
    """An agent that is no named tuple."""

    def act(self, releases: Any, t: int, rng: Any) -> tuple[int, int, float]:
        return 0, 1, 0.0


class Idle(Plain):
    """In place of an agent: it has no act."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (None, r"must return Parts\(agent, curator\), got None"),
        ((UCB.start(2), Plain.start(2)), r"must return Parts\(agent, curator\), got a tuple"),
        (Parts(UCB, Plain.start(2)), "the agent of made must be a NamedTuple, got the class UCB itself"),  # type: ignore[arg-type]
        (Parts(NotATuple(), Plain.start(2)), "the agent of made must be a NamedTuple, got a NotATuple"),
        (Parts(Idle.start(2), Plain.start(2)), "the agent of made must have a method act, and a Idle has none"),  # type: ignore[arg-type]
        (Parts(UCB.start(2), UCB.start(2)), "the curator of made must have a method add, and a UCB has none"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_is_made_of_other_things_is_refused(parts: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _made(parts)(2)


class TwoValues(UCB):
    """An agent that forgets the line."""

    __slots__ = ()

    def act(self, releases: Any, t: int, rng: Any) -> Any:
        return 0, 1


class OtherArguments(UCB):
    """An agent that is asked otherwise."""

    __slots__ = ()

    def act(self) -> Any:  # type: ignore[override]
        return 0, 1, 0.0


@pytest.mark.parametrize("agent", [TwoValues, OtherArguments])
def test_without_the_compiler_a_wrong_act_is_a_fault_of_the_policy(agent: Any) -> None:
    made = _made(Parts(agent.start(2), Plain.start(2)))
    with pytest.raises(InputError, match=r"made cannot be played: .*; act must take \(releases, t, rng\) and return"):
        dp.simulate(made, arms="0.9,0.6", horizon=10, runs=1, engine="python")


@pytest.mark.parametrize("target", ["mine.py:made", "./mine.py:made", "folder/mine:made"])
def test_a_file_in_the_place_of_a_module(target: str) -> None:
    with pytest.raises(InputError, match=r"must be a name or module:function, such as mine:made, got"):
        dp.simulate(target, arms="0.9,0.6", horizon=10)


@pytest.mark.parametrize("words", [("create", "x"), ("list",), ("revoke", "x"), ("rotate",)])
def test_keys_without_the_extra_name_it(
    dpbandits: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "fastapi" else found(name))
    status, _, err = dpbandits("key", *words)
    assert status == 2
    assert "fastapi is not installed: pip install" in err


@pytest.mark.parametrize("words", [("list",), ("revoke", "x")])
def test_keys_are_not_looked_for_in_a_new_database(tmp_path: Path, dpbandits: Command, words: tuple[str, ...]) -> None:
    file = tmp_path / "none.db"
    status, _, err = dpbandits("key", *words, "--store", f"sqlite:///{file}")
    assert (status, file.exists()) == (2, False)
    assert "store must be the database of a server" in err


def test_a_check_says_that_telemetry_is_not_installed(
    tmp_path: Path, dpbandits: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.asgi", None)
    status, out, err = dpbandits("serve", "--check", "--telemetry", "--port", "0")
    assert status != 0
    assert "[telemetry]" in out + err


def test_letters_that_the_output_cannot_hold_are_no_error() -> None:
    command = [sys.executable, "-m", "dpbandits", "simulate", "adap-ucb", "--arms", "0.9,0.6", "--epsilon", "1"]
    more = ["--horizon", "100", "--runs", "2", "--engine", "python"]
    done = subprocess.run([*command, *more], env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"regret" in done.stdout
    none = subprocess.run(
        [*command[:5], "--arms", "中文.csv", *more],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert b"\\u4e2d\\u6587.csv" in none.stderr


@pytest.mark.parametrize("epsilon", ["1/4", Fraction(1, 4), "0.25", Decimal("0.25")])
def test_an_epsilon_is_read_alike_everywhere(epsilon: Any) -> None:
    assert ask("0.9,0.6", horizon=100, epsilon=epsilon).epsilons[0] == 0.25
    assert dp.bounds("0.9,0.6", horizon=100, epsilon=epsilon).problem.epsilon == 0.25
    assert dp.simulate("adap-ucb", arms="0.9,0.6", horizon=10, runs=1, epsilon=epsilon).simulation.epsilon == 0.25
    assert dp.Session("adap-ucb", arms=2, epsilon=epsilon).policy.settings["epsilon"] == 0.25


def test_an_epsilon_that_no_float_holds_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon"):
        dp.Session("ldp-ucb-b", arms=2, epsilon=10**400)


def test_outcomes_with_the_same_upper_end_are_in_the_order_of_their_regret() -> None:
    made = dp.plan("0.9,0.6", horizon=50, epsilon=1, runs=2)
    for one, two in zip(made.at(1.0), made.at(1.0)[1:], strict=False):
        same = (bool(one.caution), one.interval[1]) == (bool(two.caution), two.interval[1])
        assert not same or one.regret <= two.regret


def test_a_decision_of_another_session_is_refused() -> None:
    first, second = (dp.Session("ucb1", arms=["red", "green"]) for _ in range(2))
    for session in (first, second):
        session.tell(session.ask(), 1)
    second.tell(second.ask(), 1)
    theirs = second.ask()
    mine = first.ask()
    assert (mine.id, theirs.id) == ("2", "3")
    forged = theirs._replace(id=mine.id, number=1 - mine.number)
    with pytest.raises(InputError, match="decision must be one of this session, whose decision 2 is for another arm"):
        first.tell(forged, 1)
    with pytest.raises(InputError, match="decision must be one of this session"):
        first.tell_many([(forged, 1)])
    assert first.tell(mine, 1) == "used"


def test_an_empty_log_makes_no_decision() -> None:
    session = dp.Session("adap-ucb", arms=["red", "green"], epsilon=1)
    assert session.warm_start([]) == 0
    assert (session.rounds, session.pulls) == (0, {"red": 0, "green": 0})
    assert session.warm_start([("red", 1)]) == 1


def test_a_reward_in_the_place_of_a_decision_is_refused_and_not_shown() -> None:
    session = dp.Session("ldp-ucb-b", arms=2, epsilon=1)
    device: Any = session.device()
    with pytest.raises(InputError, match="decision must be one that ask returned, got a float") as caught:
        device.respond(float(SECRET), session.ask())
    assert SECRET not in str(caught.value)


def test_a_session_says_in_which_unit_a_released_mean_is() -> None:
    session = dp.Session("ucb1", arms=2, reward_range=(0, 100))
    session.tell(session.ask(), 70)
    assert "released mean 0.7 of rewards mapped from [0, 100] to [0, 1]" in repr(session)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("epsilon = 1\nepsilons = [2]", "line 6: epsilon or epsilons must be given, and not both"),
        ('epsilons = "1"', "line 5: epsilons must be a list of numbers, got '1'"),
        ("epsilons = []", r"line 5: epsilons must be a list of numbers, got \[\]"),
    ],
)
def test_the_line_of_a_wrong_epsilon_is_named(tmp_path: Path, own: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'arms = "0.9,0.6"\nhorizon = 100\n[[policy]]\nname = "adap-ucb"\n{own}\n')
    with pytest.raises(InputError, match=message):
        read_comparison(file)


def test_a_single_table_of_policies_is_named_by_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('arms = "0.9,0.6"\nhorizon = 100\n\n[policy]\nname = "ucb1"\n')
    with pytest.raises(InputError, match=r"line 4: policy must be \[\[policy\]\] tables"):
        read_comparison(file)


def test_a_misspelt_keyword_is_named_before_what_is_missing() -> None:
    with pytest.raises(InputError, match=r"epsilons is neither a setting .*: did you mean epsilon"):
        dp.compare(["adap-ucb"], arms="0.9,0.6", horizon=100, epsilons=[1])


def test_a_file_in_the_place_of_the_output_folder(tmp_path: Path, dpbandits: Command) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("")
    words = ["simulate", "ucb1", "--arms", "0.9,0.6", "--horizon", "10", "--out", str(file)]
    status, _, err = dpbandits(*words)
    assert status == 2
    assert f"out must be a folder, got '{file}'" in err


def test_levels_are_not_promised_where_there_is_no_such_flag() -> None:
    with pytest.raises(InputError, match=r"is not a parameter of heldp-ucb-b \(each user has a level of their own\)"):
        dp.Session("heldp-ucb-b", arms=2, epsilon=1, epsilon_min=1)
    with pytest.raises(InputError, match="epsilon must be a number, positive and finite, got '1'"):
        policies.adap_ucb(arms=2, epsilon="1")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["NaN", "sNaN", "1E+400", "1E+1000000"])
def test_a_decimal_that_is_no_epsilon_is_refused_by_name(value: str) -> None:
    for use in (
        lambda e: policies.adap_ucb(arms=2, epsilon=e),
        lambda e: dp.Session("adap-ucb", arms=2, epsilon=e),
        lambda e: dp.simulate("adap-ucb", arms=2 * [0.5], epsilon=e, horizon=10),
    ):
        with pytest.raises(InputError, match=rf"epsilon must be .*got (Decimal\('|){re.escape(value)}"):
            use(Decimal(value))


def test_a_decimal_epsilon_is_exact() -> None:
    session = dp.Session("ldp-ucb-b", arms=2, epsilon=Decimal("0.1"))
    assert session.device().respond(session.ask(), 1).epsilon == Fraction(1, 10)


def test_what_is_a_folder_is_called_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not a file"):
        dp.simulate("ucb1", arms=f"replay({tmp_path})", horizon=10)


def test_an_epsilon_that_needs_too_long_a_batch_is_refused_by_its_own_name() -> None:
    for name in ("dp-klucb", "dp-imed", "dp-glr-imed", "dp-tt", "adap-tt"):
        with pytest.raises(InputError, match=r"^epsilon must be larger: the first batch would have over 2\^53 rewards"):
            dp.simulate(name, arms=[0.9, 0.6], epsilon=1e-300, horizon=10)


def test_a_trace_is_saved_as_parquet_alone(tmp_path: Path) -> None:
    trace = dp.simulate("ucb1", arms=[0.9, 0.6], horizon=10, runs=2)
    for name in ("x.csv", "x.foo", "x"):
        with pytest.raises(InputError, match=r"must end in \.parquet"):
            trace.save(tmp_path / name)


def test_epsilon_may_be_a_text_in_an_audit() -> None:
    assert dp.audit.verify("ldp-ucb-b", epsilon="1/2").claim == 0.5


def test_an_unknown_text_for_gamma_names_the_known_one() -> None:
    with pytest.raises(InputError, match=r"gamma must be in \(0, 1\), or t\^-4, got 'foo'"):
        dp.simulate("private-ucb", arms=[0.9, 0.6], epsilon=1, horizon=10, gamma="foo")


@pytest.mark.parametrize(
    ("arms", "rule"),
    [
        ([], "arms must be at least two names, got none"),
        (["red"], r"arms must be at least two names, got \['red'\]"),
        ("red,green", r"arms must be names such as \['red', 'green'\], or how many, got 'red,green'"),
        ("beta(1,2", "arms: cannot read"),
    ],
)
def test_a_session_asks_for_names(arms: object, rule: str) -> None:
    with pytest.raises(InputError, match=f"^{rule}"):
        dp.Session("ucb1", arms=arms)


def test_numbers_in_a_list_are_names_of_a_session_s_arms() -> None:
    """Doses and prices, for instance."""
    session = dp.Session("ucb1", arms=[0.5, 2.0, 5])
    assert session.arms == (0.5, 2.0, 5)
    assert dp.Session.thaw(session.freeze()).arms == (0.5, 2.0, 5)


def test_a_simulation_of_no_arms_says_so() -> None:
    with pytest.raises(InputError, match=r"^arms must be at least two, got none$"):
        dp.simulate("ucb1", arms=[], horizon=10)
    with pytest.raises(InputError, match=r"^arms must be at least two, got one: '0\.5'$"):
        dp.simulate("ucb1", arms=[0.5], horizon=10)


def test_another_name_of_a_distribution_has_a_hint() -> None:
    with pytest.raises(InputError, match=r"distribution 'gaussian' is unknown: did you mean normal\?"):
        dp.simulate("ucb1", arms="gaussian(0,1)+gaussian(1,1)", horizon=10)


@pytest.mark.parametrize("command", [["simulate", "ucb1", "--arms", "0.5,0.4", "--horizon", "10"], ["benchmark"]])
def test_the_name_of_a_file_is_no_output_folder(command: list[str], dpbandits: Command, tmp_path: Path) -> None:
    status, _, error = dpbandits(*command, "--out", str(tmp_path / "x.parquet"))
    assert status == 2
    assert re.search(r"out must be a folder, got '.*x.parquet', the name of a file", error)
    assert not list(tmp_path.iterdir())


def test_a_refused_local_policy_says_how_its_device_is_audited() -> None:
    verdict = dp.audit.verify("ldp-imed-p", epsilon=1.0)
    assert verdict.verdict == "refused"
    assert verdict.reason.endswith("audit its device instead: dpbandits audit curator piecewise --exact")
    for name in lookup.names():
        curator = lookup.sample(name).curator
        assert not isinstance(curator, Local) or curator.mechanism in EXACT
