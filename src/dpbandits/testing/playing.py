"""Laws of playing: compiled code, skipped rounds and bulk draws change no choice and no distribution."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import ks_2samp

from dpbandits.agents import skip_ahead
from dpbandits.bounds import Bound
from dpbandits.curators.rounds import OneByOne
from dpbandits.errors import InputError
from dpbandits.parts import arrays, copied
from dpbandits.policies import lookup
from dpbandits.policies.policy import USERS
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.loop import play_stint
from dpbandits.testing.case import ROUNDS, Case, generators, play_policy, player, same_memory
from dpbandits.types import Integers

RUNS = 300
ALPHA = 1e-6  # probability with which a statistical law refuses a correct policy
EVERY_ROUND = np.arange(1, ROUNDS + 1)


def compiled_run_is_the_python_run(case: Case) -> None:
    """Same pulls, same memory, and generators left in the same state, with bulk draws and without."""
    for bulk in (False, True):
        one, two = case.policy(), case.policy()
        ends = []
        for quick, policy in ((False, one), (True, two)):
            random = generators(1)
            pulls = play_policy(policy, case.environment(), np.array([7, ROUNDS]), random, bulk=bulk, quick=quick)
            ends.append((pulls.tolist(), [rng.bit_generator.state for rng in random]))
        assert ends[0] == ends[1], f"the compiled run differs (bulk={bulk})"
        for left, right in ((one.agent, two.agent), (one.curator, two.curator)):
            assert same_memory(left, right), f"the compiled run leaves another memory (bulk={bulk})"


def stints_are_what_asking_every_round_gives(case: Case) -> None:
    """On one stream of rewards, an agent that answers with long stints chooses as one that is asked in every round.

    An agent that draws its choices draws other ones in stints. Then the best arm's pulls, halfway and at the end, have
    the same distribution (Kolmogorov-Smirnov, error 1e-6 each).
    """
    policy = case.policy()
    if skip_ahead(policy.agent, policy.curator) is policy.agent:
        return
    environment = case.environment()
    players = [player(policy, environment, skipping=skipping, bulk=False) for skipping in (True, False)]
    if _draws(case):
        marks = np.array([ROUNDS // 2, ROUNDS])
        one, two = (
            np.array([played(policy.fresh(), environment, marks, generators(run, way))[:, 0] for run in range(RUNS)])
            for way, played in enumerate(players)
        )
        for mark in range(len(marks)):
            _same_law(one[:, mark], two[:, mark])
        return
    for seed in range(3):
        one, two = (played(policy.fresh(), environment, EVERY_ROUND, generators(seed)) for played in players)
        assert np.array_equal(one, two), "a choice that was said to stand would have been another"


def _draws(case: Case) -> bool:
    """Whether the agent draws its choices when it is asked in every round."""
    random, untouched = generators(1), generators(1)
    play_policy(case.policy(), case.environment(), np.array([100]), random, skipping=False, quick=False)
    return random[2].bit_generator.state != untouched[2].bit_generator.state


def _same_law(one: Sequence[int] | Integers, two: Sequence[int] | Integers) -> None:
    found = ks_2samp(one, two, method="asymp")
    assert found.pvalue >= ALPHA, f"the two distributions are at distance {found.statistic:.3f}"


def bulk_draws_of_sure_rewards_are_what_asking_every_round_gives(case: Case) -> None:
    """On arms that always pay the same, drawing a stint at once leaves no freedom: every round's choice is the same.

    This says nothing where the device itself draws noise for each reward (the local model), or the agent draws stints.
    """
    policy = case.policy()
    stints = skip_ahead(policy.agent, policy.curator) is not policy.agent
    if policy.guarantee.trust == "local" or (stints and _draws(case)):
        return
    sure = case.environment(",".join("10"[arm % 2] for arm in range(policy.arms)))
    players = [player(policy, sure, skipping=quick, bulk=quick) for quick in (False, True)]
    for seed in range(20):
        one, two = (played(policy.fresh(), sure, EVERY_ROUND, generators(seed)) for played in players)
        assert np.array_equal(one, two), f"bulk draws choose otherwise (seed {seed})"


def bulk_draws_have_the_law_of_single_ones(case: Case) -> None:
    """The best arm's pulls have the same distribution with bulk draws and without (Kolmogorov-Smirnov, error 1e-6)."""
    policy, environment, samples = case.policy(), case.environment(), []
    for bulk in (False, True):
        played, marks = player(policy, environment, bulk=bulk), np.array([ROUNDS])
        runs = [played(policy.fresh(), environment, marks, generators(run, int(bulk))) for run in range(RUNS)]
        samples.append([int(pulls[0, 0]) for pulls in runs])
    _same_law(samples[0], samples[1])


def choices_are_in_range(case: Case) -> None:
    """Arms exist, stints last at least a round, and lines are numbers."""
    policy, environment, random = case.policy(), case.environment(), generators(6)
    checked, t = _Checked(policy.agent), 0
    while t < ROUNDS:
        t += play_stint(environment, OneByOne(policy.curator), checked, t + 1, ROUNDS - t, *random)[1]


class _Checked:
    """An agent whose answers are checked."""

    def __init__(self, agent: object) -> None:
        self.agent = agent

    def act(self, releases: object, t: int, rng: object) -> tuple[int, int, float]:
        arm, stint, line = self.agent.act(releases, t, rng)  # type: ignore[attr-defined]
        assert arm >= 0, f"arm {arm} in round {t}"
        assert stint >= 1, f"stint {stint} in round {t}"
        assert not math.isnan(line), f"line {line} in round {t}"
        return arm, stint, line


def two_starts_share_no_memory(case: Case) -> None:
    """Two policies from one factory do not share arrays."""
    one, two = case.policy(), case.policy()
    for part in (one.agent, one.curator):
        for other in (two.agent, two.curator):
            for _, left in arrays(part):
                assert not any(np.shares_memory(left, right) for _, right in arrays(other)), "two starts share an array"
    fresh = two.fresh()
    assert same_memory(one.agent, fresh.agent), "a fresh policy is not as it was made"
    assert same_memory(one.curator, fresh.curator), "a fresh policy is not as it was made"


def reading_a_release_changes_nothing(case: Case) -> None:
    """A release read twice is the same release, and reading leaves no trace."""
    policy = case.policy()
    play_policy(policy, case.environment(), np.array([500]), generators(7), quick=False)
    curator, before = policy.curator, copied(policy.curator)
    for arm in range(policy.arms):
        if curator.ready(arm, 1.0):
            reads = [(curator.mean(arm), curator.samples(arm, 0), curator.width(arm, 1.0, 0)) for _ in range(2)]
            assert reads[0] == reads[1], "a release read twice differs"
            assert curator.samples(arm, 5) >= curator.samples(arm, 0), "samples must not fall"
            assert curator.width(arm, 1.0, 5) <= curator.width(arm, 1.0, 0), "the least width must not grow"
            assert curator.lowest(arm, 5) <= curator.mean(arm), "lowest must not exceed the mean"
    assert same_memory(curator, before), "reading left a trace"


#: What no number of a policy may be.
NOT_FINITE = (math.nan, math.inf, -math.inf)

#: Further values that no policy accepts, by parameter.
BAD: dict[str, tuple[object, ...]] = {
    "arms": (1, 0, -3),
    "epsilon": (0.0, -1.0),
    "delta": (1.0, -0.1),
    "alpha": (0.0, -1.0),
    "beta": (0.0, 1.0),
    "gamma": (0.0, 1.0),
    "epoch_factor": (0.0, -1.0),
    "cover_factor": (0.0, -1.0),
    "c": (0.0, -1.0),
    "ratio": (1.0, -1.0),
    "correction": (-1.0,),
    "bins": (0, -1),
    "v": (1.0, 1.6),
    "schedule": ("z",),
    "rho": (0.0, -1.0, "z"),
    "first": (0, "z"),
    "horizon": (0, -1),
}


def bad_parameters_are_refused_by_name_and_value(case: Case) -> None:
    """A bad parameter is refused at the start, by one line with its name and its value."""
    for name, values in _bad(case.factory).items():
        for value in values:
            error = _refusal(case, name, value)
            assert error is not None, f"{name}={value} is accepted"
            assert error.parameter == name, f"'{error}' is said to be about {error.parameter}, not {name}"
            assert f"{value}" in str(error), f"'{error}' does not show {value}"
            assert "\n" not in str(error)


def _bad(factory: lookup.Factory) -> dict[str, tuple[object, ...]]:
    """Values that a policy must refuse, for each parameter of its own; ``published`` reads what concerns users."""
    own = {name: one for name, one in inspect.signature(factory).parameters.items() if name not in USERS}
    threshold = lookup.traits(factory).threshold
    known = BAD if threshold is None else {**BAD, threshold: BAD["epsilon"]}
    numbers = [name for name, one in own.items() if lookup.kinds(one.annotation) & {"float", "int"}]
    return {name: (*known.get(name, ()), *(NOT_FINITE if name in numbers else ())) for name in own}


def _refusal(case: Case, name: str, value: object) -> InputError | None:
    try:
        case.policy(**{name: value})
    except InputError as error:
        return error
    return None


def regret_is_below_the_bounds(case: Case) -> None:
    """The mean regret of 40 runs is at most every proven upper bound on it (error below 1e-6 where it is as large).

    A policy without a theorem passes, and so does one whose theorem is on the limit of regret / log T alone.
    """
    if case.reward_range is not None:
        return  # the theorems are on rewards as they are paid
    trace = on_proven_ground(case, horizon=20_000, runs=40)
    mean, error = trace.final_regret.mean(), 6.0 * trace.stderr[-1]
    for bound in proven_bounds(trace):
        assert mean - error <= (bound.value or 0.0), f"regret {mean:.4g} exceeds {bound.name}: {bound.value:.4g}"


def on_proven_ground(case: Case, horizon: int, runs: int) -> Trace:
    """The policy where theorems speak of it: any size of reward on normal ones, levels all at the threshold."""
    policy = case.policy()
    level = 1.0 if policy.threshold is None else policy.threshold
    return simulate(
        case.factory,
        arms="normal(0.9,1)+normal(0.6,1)+normal(0.4,1)" if policy.any_reward else case.arms,
        horizon=horizon,
        epsilon=policy.settings.get("epsilon"),
        options={name: value for name, value in policy.options.items() if name != "epsilon"},
        levels=None if policy.traits.levels is None else [level],
        runs=runs,
        checkpoints=1,
        workers=2,
    )


def proven_bounds(trace: Trace) -> list[Bound]:
    """The upper bounds on the regret of a trace that are proven and hold at its horizon."""
    upper = [bound for bound in trace.bounds() if bound.kind == "upper" and bound.checked and bound.rate is None]
    return [bound for bound in upper if bound.value is not None]
