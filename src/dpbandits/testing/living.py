"""Laws of live runs: responses that come late, in any order or never, saved sessions, and exact noise."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from dpbandits.changing import allows_pauses
from dpbandits.curators.kept_batches import Batches
from dpbandits.curators.rounds import OneByOne
from dpbandits.environments.delays import parse_delay
from dpbandits.errors import InputError
from dpbandits.exact import SystemNoise
from dpbandits.live import Desk, Live, OpenDecision, seen
from dpbandits.numerics import GRID, on_grid, unit
from dpbandits.parts import copied
from dpbandits.policies import lookup
from dpbandits.protocols import FOR_EVER
from dpbandits.session import Session
from dpbandits.simulation import loop
from dpbandits.simulation.delayed import play_delayed, room
from dpbandits.testing.case import ROUNDS, Case, generators, same_memory
from dpbandits.types import Rng

DELAYED_ROUNDS = 400
SOME = 60  # rounds
WINDOW = 30.0
LOSS = 0.2


def session_frozen_halfway_is_the_simulation(case: Case) -> None:
    """A session that is frozen and thawed halfway ends in the same state as the simulation."""
    policy, environment, seed = case.policy(), case.environment(), 2
    noise, choices = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    pulls = np.zeros((1, policy.arms), np.int64)
    rewards = np.random.default_rng(3)
    curator: Any = OneByOne(policy.curator)
    loop.play(environment, curator, policy.agent, np.array([ROUNDS]), pulls, rewards, noise, choices)

    session, rewards = Session(case.policy(), noise="simulated", seed=seed), np.random.default_rng(3)
    told = np.zeros(policy.arms, np.int64)
    local, leveled = policy.guarantee.trust == "local", policy.traits.levels is not None
    for t in range(ROUNDS):
        decision = session.ask()
        level = float(environment.population.level(rewards))
        response: Any = float(environment.draw(decision.number, rewards))
        if local and leveled and level == 0.0:
            response = None
        elif local:
            response = session.device(level=level if leveled else None).respond(decision, response)
        session.tell(decision, response)
        told[decision.number] += 1
        if t == ROUNDS // 2:
            session = Session.thaw(session.freeze(), case.factory)
    assert told.tolist() == pulls[0].tolist(), "the session chose other arms than the simulation"
    for left, right in ((session.policy.agent, policy.agent), (session.policy.curator, policy.curator)):
        assert same_memory(left, right), "the session remembers other things than the simulation"


def delayed_simulation_is_the_live_run(case: Case) -> None:
    """A simulation with delays, losses and a window chooses as a live run with the same responses at the same times."""
    policy, environment, delay = case.policy(), case.environment(), parse_delay("lognormal(10,1)")
    marks = np.arange(1, DELAYED_ROUNDS + 1)
    pulls = np.zeros((DELAYED_ROUNDS, policy.arms), np.int64)
    desk = Desk.start(policy.arms, by_stint=policy.curator.by_stint, window=WINDOW)
    curator, agent = policy.curator, policy.agent
    releases = seen(policy, curator, desk)
    rewards, noise, choices, delays = generators(11, count=4)
    given = (desk, delay, LOSS, room(DELAYED_ROUNDS), marks, pulls)
    play_delayed(environment, releases, curator, agent, *given, rewards, noise, choices, delays)
    arms = np.argmax(np.diff(pulls, axis=0, prepend=0), axis=1)

    live = Live(case.policy(), window=WINDOW)
    rewards, noise, choices, delays = generators(11, count=4)
    coming: list[tuple[float, int, float, float]] = []
    for t in range(1, DELAYED_ROUNDS + 1):
        for time, number, response, level in sorted(event for event in coming if event[0] < t):
            live.receive(number, response, level, time, noise)
        coming = [event for event in coming if event[0] >= t]
        decision = live.decide(float(t), noise, choices)
        assert decision.arm == arms[t - 1], f"the live run chooses another arm in round {t}"
        level = float(environment.population.level(rewards))
        response = float(policy.curator.respond(environment.draw(decision.arm, rewards), level, noise))
        time = t + delay.rounds(delays)
        if np.isnan(response):
            live.receive(decision.number, None, level, float(t), noise)
        elif delays.random() >= LOSS:
            coming.append((time, decision.number, response, level))
    assert same_memory(live.policy.curator, policy.curator), "the live run remembers other things"


def what_comes_too_late_changes_nothing_but_its_count(case: Case) -> None:
    """A response after its window leaves the policy as it was."""
    live, random = _begun(case, window=WINDOW)
    waiting = [live.decide(100.0, *random) for _ in range(3)]
    live.tick(500.0, random[0])
    before, late = copied(live.policy.curator), live.desk.late[0]
    assert [live.receive(one.number, 1.0, 1.0, 500.0, random[0]) for one in waiting] == ["late"] * 3
    assert live.desk.late[0] == late + 3
    assert same_memory(live.policy.curator, before), "a late response was used"


def a_stint_is_released_over_the_responses_that_came(case: Case) -> None:
    """A curator that releases whole stints closes one after its window, over the responses that came, in any order."""
    if not case.policy().curator.by_stint:
        return
    memories = []
    for order in (1, -1):
        live, (noise, choices) = _begun(case, window=WINDOW)
        decisions = _new_stint(live, noise, choices)
        come = decisions[: (len(decisions) + 1) // 2]
        before = live.policy.curator.samples(come[0].arm, 0)
        for number, one in list(enumerate(come))[::order]:
            assert live.receive(one.number, on_grid(number % 7 / 7), 0.0, 1010.0, noise) == "used"
        live.tick(2000.0, noise)
        after = live.policy.curator.samples(come[0].arm, 0)  # of this stint, or of all
        assert after in (len(come), before + len(come)), "the release is not over what came"
        memories.append(live.policy.curator)
    assert same_memory(*memories), "the order in which rewards came shows in the release"


def _new_stint(live: Live, noise: Rng, choices: Rng) -> list[OpenDecision]:
    """All decisions of a stint that asks for at least two responses, and two more, none of them answered."""
    while True:
        first = live.decide(1000.0, noise, choices)
        if live.desk.given[0] == 1 and live.desk.asked[0] > 1:
            return [first, *(live.decide(1000.0, noise, choices) for _ in range(live.desk.asked[0] + 1))]
        live.receive(first.number, 1.0, 0.0, 1000.0, noise)


def a_stint_to_which_nothing_came_is_begun_again(case: Case) -> None:
    """Nothing is released for it, and the same arm is served."""
    if not case.policy().curator.by_stint:
        return
    live, (noise, choices) = _begun(case, window=WINDOW)
    first, version = _new_stint(live, noise, choices), live.version
    again = live.decide(2000.0, noise, choices)
    assert live.version == version, "something was released where nothing came"
    assert again.arm == first[0].arm, "another arm is served"
    assert live.receive(again.number, 1.0, 0.0, 2000.0, noise) == "used"


def closing_does_not_depend_on_rewards(case: Case) -> None:
    """With what is released held fixed, other rewards change no decision and no time at which a stint is closed."""
    if case.policy().guarantee.trust != "central":
        return
    histories = []
    for background in (0.0, 1.0):
        live, noise, choices = Live(case.policy(), window=WINDOW), _Held(), np.random.default_rng(0)
        history = []
        waiting = []
        for t in range(DELAYED_ROUNDS):
            waiting.append(live.decide(float(t), noise, choices))  # type: ignore[arg-type]
            if t % 3 != 0:  # every third is lost, the others come 5 rounds later
                for one in [one for one in waiting if one.time == t - 5]:
                    live.receive(one.number, background, 0.0, float(t), noise)  # type: ignore[arg-type]
            history.append((waiting[-1].arm, live.version))
        histories.append(history)
    assert histories[0] == histories[1], "when a stint is closed depends on rewards that are under noise"


class _Held:
    """Noise that hides everything: whatever it is added to, the sum is the next number of a fixed list."""

    def __init__(self) -> None:
        self._sums = np.random.default_rng(1)

    def laplace(self, loc: float, scale: float) -> Any:
        return _HeldSum(float(self._sums.random()))

    normal = laplace


class _HeldSum:
    __array_ufunc__ = None

    def __init__(self, number: float) -> None:
        self.number = number

    def __radd__(self, value: float) -> float:
        return self.number


def open_decisions_survive_a_freeze(case: Case) -> None:
    """A live run that is frozen with open decisions goes on as if it had not been."""
    live, random = _begun(case)
    waiting = [live.decide(100.0, *random) for _ in range(3)]
    thawed = Live(live.policy)
    thawed.thaw(live.freeze())
    runs = []
    for run in (live, thawed):
        noise, choices = generators(13, count=2)
        for one in reversed(waiting):
            run.receive(one.number, 1.0, 1.0, 101.0, noise)
        runs.append([run.decide(102.0, noise, choices).arm for _ in range(5)])
    assert runs[0] == runs[1], "a thawed run chooses otherwise"
    for left, right in ((live.policy.agent, thawed.policy.agent), (live.policy.curator, thawed.policy.curator)):
        assert same_memory(left, right), "a thawed run remembers other things"


def pauses_make_no_stint_longer(case: Case) -> None:
    """However often arms are paused and resumed, a run goes on, and its stints are as long as what was played allows.

    They are compared with a run without pauses that has played one arm as often as the run with pauses all of them.
    """
    if not _can_pause(case):
        return
    paused, (noise, choices) = Live(case.policy(), window=WINDOW), generators(14, count=2)
    longest = max(asked for _, asked in _with_pauses(paused, noise, choices) if asked < FOR_EVER)
    live, (noise, choices), most = Live(case.policy()), generators(15, count=2), 0
    for t in range(ROUNDS):
        pulls = list(live.pulls)
        decision = live.decide(float(t), noise, choices)
        most = max(most, live.desk.asked[0])
        if live.desk.given[0] == 1 and pulls[decision.arm] >= SOME:
            break
        live.receive(decision.number, 1.0, 1.0, float(t), noise)
    reason = f"a stint of {longest} rounds after {SOME} with pauses, and at most {most} without"
    assert longest <= most, f"{reason}: its agent counts rounds that were not played, see protocols.Counting"


def a_run_with_pauses_survives_a_freeze(case: Case) -> None:
    """A run whose arms are paused and resumed goes on after a freeze as if it had not been frozen."""
    if not _can_pause(case):
        return
    live = Live(case.policy(), window=WINDOW)
    _with_pauses(live, *generators(14, count=2))
    assert live.paused, "no arm is paused"
    thawed = Live(case.policy(), window=WINDOW)
    thawed.thaw(live.freeze())
    runs = [_with_pauses(run, *generators(16, count=2)) for run in (live, thawed)]
    assert runs[0] == runs[1], "a thawed run chooses otherwise"
    assert live.freeze() == thawed.freeze(), "a thawed run remembers other things"


def _can_pause(case: Case) -> bool:
    """Whether arms can be paused; where the policy does not allow it, the refusal must change nothing."""
    if allows_pauses(case.policy()):
        return case.policy().arms > 2
    live, random = _begun(case)
    before = live.freeze()
    try:
        live.pause(0, random[0])
    except InputError:
        assert live.freeze() == before, "a refused pause changes something"
        return False
    raise AssertionError("an arm was paused of a policy that does not allow it")


def _with_pauses(live: Live, noise: Rng, choices: Rng) -> list[tuple[int, int]]:
    """The arm of each round, and how much its stint asked for. After most rounds the arm is paused, for a while or not.

    Of three responses one comes at once, one two rounds later, when its arm may be paused, and one never.
    """
    history, first = [], live.desk.decisions[0] + 1
    for t in range(first, first + SOME):
        decision = live.decide(float(t), noise, choices)
        history.append((decision.arm, live.desk.asked[0]))
        for one in list(live.open.values()):
            if (one.number % 3, t - one.time) in ((0, 0.0), (1, 2.0)):
                live.receive(one.number, 1.0, 1.0, float(t), noise)
        for arm in list(live.paused):
            live.resume(arm)
        if t % 4 < 3:
            live.pause(decision.arm, noise)
        if t % 4 > 0:  # and so the last one stays paused
            live.resume(decision.arm)
    return history


def every_curator_runs_on_exact_noise(case: Case) -> None:
    """The same class, on integer noise: sums that are released are multiples of 2^-16, and so are responses."""
    policy, environment = case.policy(), case.environment()
    session, rng = Session(case.policy()), np.random.default_rng(0)
    assert "exact" in session.guarantee.conditions
    local, leveled = policy.guarantee.trust == "local", policy.traits.levels is not None
    for _ in range(SOME):
        decision = session.ask()
        reward: Any = float(environment.draw(decision.number, rng))
        if not local:
            session.tell(decision, unit(reward))
            continue
        response = session.device(level="1/2" if leveled else None).respond(decision, reward)
        assert (response.value * GRID).is_integer(), "a response is not on the grid"
        session.tell(decision, response.to_bytes())
    if policy.guarantee.trust == "central":
        for total in _released_sums(session.policy.curator, policy.arms):
            assert abs(total - round(total)) < 1e-6 * max(abs(total), 1.0), "a released sum is not on the grid"


@singledispatch
def _released_sums(curator: Any, arms: int) -> list[float]:
    """The sums that were released, in steps of the grid: what the released means are made of."""
    return [curator.mean(arm) * curator.samples(arm, 0) * GRID for arm in range(arms) if curator.ready(arm, 0.0)]


@_released_sums.register
def _(curator: Batches, arms: int) -> list[float]:
    """The sum of each batch."""
    return (curator.sums * GRID).ravel().tolist()


def exact_noise_refuses_what_is_not_on_the_grid(case: Case) -> None:
    """A central curator that is given a reward off the grid does not get exact noise for it."""
    policy = case.policy()
    if policy.guarantee.trust != "central":
        return
    source: Any = SystemNoise()
    try:
        for _ in range(DELAYED_ROUNDS):
            policy.curator.add(0, 0.3, 0.0, source)
            policy.curator.close(0, source)
    except TypeError:
        return
    raise AssertionError("exact noise was added to a value off its grid, or none was added at all")


def _begun(case: Case, **more: Any) -> tuple[Live, tuple[Rng, ...]]:
    """A live run that has seen some rounds."""
    short = lookup.traits(case.factory).short
    live, environment = Live(case.policy(**short), **more), case.environment()
    rewards, noise, choices = generators(12)
    for t in range(SOME):
        decision = live.decide(float(t), noise, choices)
        level = float(environment.population.level(rewards))
        response = live.policy.curator.respond(environment.draw(decision.arm, rewards), level, noise)
        live.receive(decision.number, None if np.isnan(response) else float(response), level, float(t), noise)
    return live, (noise, choices)
