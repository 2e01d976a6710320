"""Sessions under real traffic: batches, arms that come and go, propensities, reward ranges, and a start from a log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandits import live, policies
from dpbandits.agents import Thompson, propensities
from dpbandits.changing import allows_more_arms, allows_pauses
from dpbandits.curators import Plain
from dpbandits.environments import Arms
from dpbandits.errors import InputError
from dpbandits.live import Live
from dpbandits.policies import lookup
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE, Releases
from dpbandits.session import Decision, Session, saved
from dpbandits.types import Rng

CHANGEABLE = [name for name in lookup.names() if allows_pauses(lookup.sample(name))]
GROWING = [name for name in lookup.names() if allows_more_arms(lookup.sample(name))]


@pytest.mark.parametrize(
    ("name", "pauses"), [("dp-se", False), ("dp-tt", False), ("dp-ucb", True), ("private-ucb", True)]
)
def test_some_policies_take_no_more_arms(name: str, pauses: bool) -> None:
    """The first two compare all arms from the beginning, so that none can be left out either; the others split their
    epsilon among the arms."""
    assert not allows_more_arms(lookup.sample(name))
    assert allows_pauses(lookup.sample(name)) is pauses
    assert {"ucb1", "adap-ucb"} <= {*GROWING} <= {*CHANGEABLE}


def begun(name: str, arms: Any = ("a", "b", "c"), **settings: Any) -> Session:
    made = lookup.sample(name, arms=len(arms), horizon=2000)
    return Session(made, arms=list(arms), noise="simulated", seed=0, **settings)


def answer(asked: Session, decision: Decision, reward: float) -> str:
    if asked.policy.guarantee.trust != "local":
        return asked.tell(decision, reward)
    level = "1" if asked.policy.traits.levels else None
    return asked.tell(decision, asked.device(level=level).respond(decision, reward))


def play(asked: Session, rounds: int) -> list[Any]:
    chosen = []
    for number in range(rounds):
        decision = asked.ask()
        chosen.append(decision.arm)
        answer(asked, decision, (number + decision.number) % 2)
    return chosen


# --- batches --------------------------------------------------------------------------------------------------------


def test_a_batch_is_asked_and_told_at_once() -> None:
    asked = Session("ldp-ucb-b", arms=["red", "green"], epsilon=1)
    batch = asked.ask_many(50)
    assert len({decision.id for decision in batch}) == 50
    assert asked.open == 50
    device = asked.device()
    assert asked.tell_many([(one, device.respond(one, 1)) for one in reversed(batch[:-1])]) == ["used"] * 49
    assert asked.tell_many({batch[-1].id: None}) == ["missing"]
    assert (asked.open, asked.version) == (0, 49)


def test_of_a_batch_with_a_mistake_nothing_is_taken() -> None:
    asked = Session("adap-ucb", arms=2, epsilon=1)
    one, two = asked.ask_many(2)
    before = asked.freeze()
    for wrong, message in (
        ([(one, 1), (two, "x")], "reward must be a number"),
        ([(one, 1), ("9", 1)], "decision must be one that waits for a response, got 9"),
        ([(one, 1), (one, 1)], "decision must be answered once, got two answers to 1"),
        ([(one, 1), (None, 1)], "decision must be one that ask returned"),
    ):
        with pytest.raises(InputError, match=message):
            asked.tell_many(wrong)  # type: ignore[arg-type]
        assert asked.freeze() == before
    with pytest.raises(InputError, match="count must be a whole number of at least 1, got 0"):
        asked.ask_many(0)


def test_what_has_expired_is_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_EXPIRED", 100)
    running, rng = Live(policies.ucb1(2), window=1.0), np.random.default_rng(0)
    for now in range(1000):
        running.decide(float(10 * now), rng, rng)
        assert len(running.expired) <= 101
    assert running.forgotten > 800
    assert running.receive(3, 1.0, 0.0, 1e6, rng) == "late", "a response to a forgotten decision is late, and not used"
    with pytest.raises(InputError, match="decision must be one that waits for a response, got 1001"):
        running.receive(1001, 1.0, 0.0, 1e6, rng)
    thawed = Live(policies.ucb1(2), window=1.0)
    thawed.thaw(running.freeze())
    assert thawed.forgotten == running.forgotten


# --- arms that come and go ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHANGEABLE)
def test_a_paused_arm_is_not_chosen_until_it_is_resumed(name: str) -> None:
    asked = begun(name)
    assert set(play(asked, 60)) == {"a", "b", "c"}
    asked.pause("b")
    assert asked.paused == ("b",)
    asked = Session.thaw(asked.freeze())
    assert asked.paused == ("b",)
    assert "b" not in play(asked, 100)
    asked.resume("b")
    assert "b" in play(asked, 400)
    assert asked.pulls["b"] + asked.pulls["a"] + asked.pulls["c"] == asked.rounds == 560


@pytest.mark.parametrize("name", CHANGEABLE)
def test_a_pause_of_no_length_changes_nothing(name: str) -> None:
    """What the agent remembers survives being put into an agent of fewer arms and back."""
    one, two = begun(name), begun(name)
    play(one, 40)
    play(two, 40)
    if two.policy.curator.by_stint:  # a pause closes the open stint: pause an arm that has none
        arm = next(arm for arm in ("a", "b", "c") if two.arms.index(arm) != two._live.desk.arm[0])
    else:
        arm = "b"
        while two._live.desk.asked[0] > 0:
            play(one, 1)
            play(two, 1)
    two.pause(arm)
    two.resume(arm)
    assert play(one, 100) == play(two, 100)


@pytest.mark.parametrize("name", GROWING)
def test_an_arm_that_is_added_is_explored(name: str) -> None:
    asked = begun(name, ("a", "b"))
    play(asked, 100)
    known = asked.means
    asked.add_arm("new")
    assert asked.arms == ("a", "b", "new")
    assert asked.means == {**known, "new": None}
    asked = Session.thaw(asked.freeze())
    assert "new" in play(asked, 200)
    assert asked.pulls["new"] > 0
    assert asked.policy.arms == 3


def test_where_the_policy_does_not_allow_it_the_arms_stay() -> None:
    elimination = Session("dp-se", arms=3, epsilon=1, horizon=1000)
    with pytest.raises(InputError, match="arm cannot be paused: dp-se remembers more than"):
        elimination.pause(0)
    split = Session("private-ucb", arms=3, epsilon=1, horizon=1000)
    with pytest.raises(InputError, match="arms cannot be added: the settings of private-ucb depend on how many"):
        split.add_arm("d")
    two = Session("ucb1", arms=["a", "b"])
    with pytest.raises(InputError, match="arm cannot be paused: at least 2 must be left, got 1"):
        two.pause("a")
    with pytest.raises(InputError, match="arm 'c' is unknown"):
        two.pause("c")
    with pytest.raises(InputError, match="arm must have a new name, got 'a'"):
        two.add_arm("a")
    assert two.arms == ("a", "b")


def test_pausing_the_arm_of_an_open_stint_closes_it_with_what_has_come() -> None:
    asked = Session("adap-ucb", arms=3, epsilon="1000")
    while True:
        decision = asked.ask()
        if asked._live.desk.asked[0] >= 4 and asked._live.desk.arrived[0] == 0:
            break
        asked.tell(decision, 1)
    late, version = asked.ask(), asked.version
    asked.tell(decision, 1)
    asked.pause(decision.arm)
    assert asked.version == version + 1
    assert asked.policy.curator.samples(decision.number, 0) == 1
    assert asked.tell(late, 1) == "late"
    assert asked.ask().arm != decision.arm


def test_an_answer_to_a_paused_arm_is_still_used() -> None:
    asked = Session("ldp-ucb-b", arms=3, epsilon=1)
    decision = asked.ask()
    asked.pause(decision.arm)
    assert asked.tell(decision, asked.device().respond(decision, 1)) == "used"


# --- propensities ---------------------------------------------------------------------------------------------------


def test_the_propensities_of_thompson_sampling_are_the_shares_of_its_choices() -> None:
    """Against 20,000 draws: each share is within 0.02 except with probability below 1e-6 (Hoeffding: 2 exp(-16))."""
    curator, rng = Plain.start(4), np.random.default_rng(0)
    for arm, (ones, zeros) in enumerate([(3, 5), (30, 40), (0, 0), (9, 2)]):
        for reward in [1.0] * ones + [0.0] * zeros:
            curator.add(arm, reward, 0.0, rng)
    agent = Thompson.start(4)
    expected = propensities(agent, curator, 90)
    assert expected is not None
    drawn = np.bincount([agent.act(curator, 90, rng)[0] for _ in range(20_000)], minlength=4) / 20_000
    assert np.abs(expected - drawn).max() < 0.02
    assert expected.sum() == pytest.approx(1.0)


def test_propensities_survive_sharp_posteriors() -> None:
    curator = Plain.start(3)
    curator.counts[:] = (10**6, 10**6, 3)
    curator.sums[:] = (5e5, 5.01e5, 1.0)
    found = propensities(Thompson.start(3), curator, 10)
    assert found is not None
    assert found[0] < found[1]
    assert found.sum() == pytest.approx(1.0)


def test_a_decision_says_how_probable_it_was() -> None:
    asked = Session("thompson", arms=["a", "b"], propensities=True, noise="simulated", seed=0)
    assert asked.ask().propensity == pytest.approx(0.5)
    for number in range(200):
        decision = asked.ask()
        assert decision.propensity is not None
        assert 0 < decision.propensity <= 1
        asked.tell(decision, number % 2 if decision.arm == "a" else 0)
    assert asked.ask().propensity != pytest.approx(0.5)
    assert Session.thaw(asked.freeze()).propensities
    asked.add_arm("c")
    asked.pause("a")
    decision = asked.ask()
    assert decision.arm in ("b", "c")
    assert 0 < (decision.propensity or 0) < 1


def test_a_policy_that_draws_no_lots_chooses_with_certainty() -> None:
    for wanted in (False, True):
        assert Session("ucb1", arms=2, propensities=wanted).ask().propensity == 1.0
    assert Session("thompson", arms=2).ask().propensity is None, "it was not asked for"


class Coin(NamedTuple):
    """An agent that draws lots, and for which nobody wrote down how."""

    arms: int

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        return int(rng.random() * self.arms), 1, NO_LINE


@published("a test")
def coin(arms: int) -> Parts:
    return Parts(Coin(arms), Plain.start(arms))


def test_a_propensity_that_nobody_knows_is_none() -> None:
    assert Session(coin, arms=2, propensities=True).ask().propensity is None
    propensities.register(Coin)(lambda agent, releases, t: np.full(agent.arms, 1 / agent.arms))
    assert Session(coin, arms=2, propensities=True).ask().propensity == 0.5


# --- rewards in any unit --------------------------------------------------------------------------------------------


def test_revenue_is_told_in_its_own_unit() -> None:
    """Arms that pay 10 to 20 and 40 to 80: without a range all are clipped to 1, and nobody tells them apart."""
    asked = Session("adap-imed", arms=["low", "high"], epsilon=5, reward_range=(0, 100), noise="simulated", seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        decision = asked.ask()
        asked.tell(decision, rng.uniform(10, 20) if decision.arm == "low" else rng.uniform(40, 80))
    assert asked.pulls["high"] > 5 * asked.pulls["low"]
    assert "clipped to [0, 100] and mapped to [0, 1]" in asked.guarantee.conditions
    assert Session.thaw(asked.freeze()).reward_range == (0.0, 100.0)
    exact = Session("adap-ucb", arms=2, epsilon=1, reward_range="0,100")
    exact.tell(exact.ask(), 25)
    exact.ask()
    assert exact.reward_range == (0.0, 100.0)


def test_devices_map_the_range_too() -> None:
    asked = Session("ldp-ucb-l", arms=2, epsilon="1000000", reward_range=[-50, 50])
    decision = asked.ask()
    assert asked.device().respond(decision, 25).value == pytest.approx(0.75, abs=1e-3)


def test_a_session_that_is_tried_out_warns_of_rewards_that_are_clipped() -> None:
    asked = Session("adap-ucb", arms=2, epsilon=1, noise="simulated", seed=0)
    with pytest.warns(UserWarning, match=r"a reward outside \[0, 1\] was clipped: reward_range maps"):
        asked.tell(asked.ask(), 17.5)


@pytest.mark.parametrize("given", ["1,0", [None, 1], 5, [1], "a,b", [0, math.inf], (1, 2, 3)])
def test_a_range_that_is_none_is_refused_by_name(given: Any) -> None:
    with pytest.raises(InputError) as caught:
        Session("adap-ucb", arms=2, epsilon=1, reward_range=given)
    assert caught.value.parameter == "reward_range"


# --- a start from a log ---------------------------------------------------------------------------------------------


def logged(rows: int) -> list[tuple[str, float]]:
    rng = np.random.default_rng(1)
    means = {"a": 0.2, "b": 0.8}
    return [(arm, float(rng.random() < means[arm])) for arm in rng.choice(["a", "b"], rows)]


@pytest.mark.parametrize("name", [n for n in lookup.names() if lookup.sample(n).guarantee.trust != "local"])
def test_a_log_is_played_as_if_its_users_had_come_first(name: str) -> None:
    """The same as a session that is told the rewards one by one: so the promise is the same."""
    pairs = logged(300)
    warm, told = (begun(name, ("a", "b")) for _ in range(2))
    used = warm.warm_start(pairs)
    assert used > 0
    queues = {arm: [reward for other, reward in pairs if other == arm] for arm in ("a", "b")}
    for _ in range(used):
        decision = told.ask()
        told.tell(decision, queues[decision.arm].pop(0))
    told.tell(told.ask(), None)
    records = [json.loads(one.freeze())["live"] for one in (warm, told)]
    for record in records:
        record["desk"].pop("closing")
    assert records[0] == records[1]
    assert warm.warm == used
    assert "log's users" in warm.guarantee.conditions or warm.guarantee.trust == "none"


def test_logs_come_as_files_frames_and_arms(tmp_path: Path) -> None:
    import pandas

    pairs = logged(200)
    frame = pandas.DataFrame(pairs, columns=["arm", "reward"])
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    texts = set()
    for log in (pairs, frame, path, str(path), Arms.of(frame), Arms.of(f"replay({path})")):
        asked = begun("adap-ucb", ("a", "b"))
        asked.warm_start(log)
        record = json.loads(asked.freeze())
        record["live"]["desk"].pop("closing")
        texts.add(json.dumps(record["live"]))
    assert len(texts) == 1


def test_in_the_local_model_a_log_holds_responses_and_no_rewards(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\na,1\nb,0\n")
    earlier = Session("ldp-ucb-b", arms=["a", "b"], epsilon=1)
    answers = []
    for _ in range(40):
        decision = earlier.ask()
        answers.append((decision.arm, earlier.device().respond(decision, 1).to_bytes()))
        earlier.tell(decision, answers[-1][1])
    asked = Session("ldp-ucb-b", arms=["a", "b"], epsilon=1)
    with pytest.raises(InputError, match="log must be pairs of an arm and a device's response in the local model"):
        asked.warm_start(path)
    with pytest.raises(InputError, match="response must be made by a device, not a reward"):
        asked.warm_start([("a", 1)])
    with pytest.raises(InputError, match="log must hold one response to a decision, got two to 1"):
        asked.warm_start([answers[0], answers[0]])
    with pytest.raises(InputError, match="response must be made at epsilon 2, got one at 1"):
        Session("ldp-ucb-b", arms=["a", "b"], epsilon=2).warm_start(answers)
    assert asked.rounds == 0
    assert asked.warm_start(answers) > 5
    with pytest.raises(InputError, match="log must come before the first decision"):
        asked.warm_start(answers)


def test_a_log_of_other_arms_is_refused() -> None:
    asked = Session("adap-ucb", arms=["a", "b"], epsilon=1)
    with pytest.raises(InputError, match=r"log must name arms of this session, got a float$"):
        Session("adap-ucb", arms=["a", "b"], epsilon=1).warm_start([(0.8414, "a")])
    with pytest.raises(InputError, match="log must name arms of this session, got 'c'"):
        asked.warm_start([("a", 1), ("c", 0)])
    for wrong in (3, [1, 2], None):
        with pytest.raises(InputError, match="log must be a file, a data frame, or pairs"):
            asked.warm_start(wrong)


# --- names, and how a session shows itself --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arms", "names"),
    [
        (np.int64(3), (0, 1, 2)),
        (np.array(["x", "y"]), ("x", "y")),
        (np.array([3, 7]), (3, 7)),
        ({"red": 0.5, "blue": 0.4}, ("red", "blue")),
        ([0.5, 0.4, 0.3], (0.5, 0.4, 0.3)),
        (Arms.of([0.5, 0.4, 0.3]), (0, 1, 2)),
        ("0.5,0.4", (0, 1)),
        (Arms.of({"red": 0.5, "blue": 0.4}), ("red", "blue")),
    ],
)
def test_arms_as_people_have_them(arms: Any, names: tuple[Any, ...]) -> None:
    asked = Session("ucb1", arms=arms)
    assert asked.arms == names
    assert Session.thaw(asked.freeze()).arms == names


@pytest.mark.parametrize(
    "arms", [[("a", 1), ("b", 2)], [None, "a"], [b"a", b"b"], [["a"], ["b"]], True, None, object()]
)
def test_names_that_json_cannot_hold_are_refused(arms: Any) -> None:
    with pytest.raises(InputError) as caught:
        Session("ucb1", arms=arms)
    assert caught.value.parameter == "arms"


def test_options_are_keywords_too() -> None:
    one: Any = np.int64(1)
    assert Session("adap-ucb", arms=2, epsilon=one, alpha=2).policy.settings["alpha"] == 2
    assert Session("AdaP UCB", arms=2, epsilon=np.float64(0.5)).policy.settings["epsilon"] == 0.5
    with pytest.raises(InputError, match="alpha must be given once"):
        Session("adap-ucb", arms=2, epsilon=1, alpha=2, options={"alpha": 2})
    with pytest.raises(InputError, match="alhpa is not an option of adap-ucb: did you mean alpha"):
        Session("adap-ucb", arms=2, epsilon=1, alhpa=2)
    with pytest.raises(InputError, match="options must be a mapping"):
        Session("adap-ucb", arms=2, epsilon=1, options=["alpha=2"])  # type: ignore[arg-type]


def test_a_policy_that_needs_a_horizon_says_so() -> None:
    with pytest.raises(InputError) as caught:
        Session("adap-moss", arms=4, epsilon=1)
    assert str(caught.value) == "horizon is required by adap-moss: how many rounds it will be played, got none"
    with pytest.raises(InputError) as caught:
        policies.adap_moss(arms=4, epsilon=1)  # type: ignore[call-arg]
    assert str(caught.value) == "horizon is required by adap-moss: how many rounds it will be played, got none"
    rows = {row["name"]: row for row in lookup.overview()}
    assert rows["adap-moss"]["options"]["horizon"] == "required"
    assert "horizon" not in rows["adap-ucb"]["options"]


def test_an_agent_whose_answer_nobody_can_play_is_named() -> None:
    class Wrong(NamedTuple):
        def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
            return 7, 1, NO_LINE

    @published("a test")
    def wrong(arms: int) -> Parts:
        return Parts(Wrong(), Plain.start(arms))

    with pytest.raises(InputError, match=r"policy wrong: Wrong\.act must return an arm that exists"):
        Session(wrong, arms=2).ask()


def test_a_session_shows_pulls_and_released_means() -> None:
    asked = begun("ldp-ucb-b", [f"arm{n}" for n in range(12)])
    play(asked, 200)
    lines = repr(asked).splitlines()
    assert len(lines) <= 5
    best = max(asked.pulls.items(), key=lambda item: item[1])
    assert best[0] in lines[1]
    assert f"{best[1]} pulls, released mean {asked.means[best[0]]:.4g}" in lines[1]
    assert "no promise" in lines[0]
    page = asked._repr_html_()
    assert "<svg" in page
    assert all(f"arm{n}" in page for n in range(12))


# --- saved sessions are checked -------------------------------------------------------------------------------------


def changed(text: str, *path: Any, to: Any) -> str:
    """A saved session with one value changed, and a checksum that fits."""
    record = json.loads(text)
    place = record
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    del record["checksum"]
    return json.dumps({**record, "checksum": saved.checksum(record)})


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("live", "desk", "arm"), [-1]),
        (("live", "desk", "arm"), [3]),
        (("live", "desk", "arm"), ["x"]),
        (("live", "desk", "asked"), [-1]),
        (("live", "desk", "asked"), [1 << 63]),
        (("live", "desk", "decisions"), [-5]),
        (("live", "desk", "out"), [5, 0, 0]),
        (("live", "curator", "counts"), [-1, 0, 0]),
        (("live", "curator", "raw_counts"), [-1, 0, 0]),
        (("live", "curator", "means"), [math.nan, 0.0, 0.0]),
        (("live", "agent", "pulls"), [-3, 0, 0]),
        (("live", "open"), [[1, 9, 1, 0.0]]),
        (("live", "open"), [[99, 0, 1, 0.0]]),
        (("live", "open"), "no"),
        (("live", "paused"), [7]),
        (("live", "pulls"), [1]),
        (("live",), {}),
        (("epsilon",), "100"),
        (("settings", "epsilon"), 100.0),
        (("settings", "epsilonn"), 100.0),
        (("settings", "arms"), 4),
        (("window",), "soon"),
        (("window",), -1),
        (("policy",), "no-such"),
        (("arms",), [["a"], "b", "c"]),
        (("arms",), ["a", "a", "b"]),
        (("reward_range",), [1, 0]),
        (("warm",), -1),
    ],
)
def test_a_saved_session_that_cannot_be_is_refused(path: tuple[Any, ...], to: Any) -> None:
    asked = Session("adap-ucb", arms=["a", "b", "c"], epsilon=1)
    for _ in range(10):
        asked.tell(asked.ask(), 1)
    asked.ask()
    text = asked.freeze()
    Session.thaw(changed(text, "version", to="x"))
    with pytest.raises(InputError) as caught:
        Session.thaw(changed(text, *path, to=to))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["policy", "settings", "arms", "epsilon", "window", "noise", "live"])
def test_a_saved_session_with_a_missing_key_is_refused_by_its_name(key: str) -> None:
    record = json.loads(Session("adap-ucb", arms=2, epsilon=1).freeze())
    del record[key], record["checksum"]
    with pytest.raises(InputError, match=f"text must be a saved session; this one is damaged: {key}"):
        Session.thaw(json.dumps({**record, "checksum": saved.checksum(record)}))
