"""What every policy must obey. Each law takes a case and raises AssertionError where it is broken."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbandits.audit import exact, releases
from dpbandits.audit.attack import attack_policy
from dpbandits.audit.instruments import NotVerifiableError
from dpbandits.audit.verdict import Verdict
from dpbandits.curators.rounds import one_by_one
from dpbandits.environments import Bernoulli, Mixed, build, parse_arms, parse_levels
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.ledger import Ledger, LedgerError
from dpbandits.session import Session
from dpbandits.simulation import compiled, loop, simulate

ROUNDS = 1500
LEDGER_ROUNDS, RARE_ROUNDS = 64, 400  # .. where the claim has a delta, releases are rare
RUNS = 300
ALPHA = 1e-6  # probability with which the statistical law refuses a correct policy

#: Values that no policy accepts, by parameter.
BAD: dict[str, tuple[Any, ...]] = {
    "arms": (1, 0, -3),
    "epsilon": (0.0, -1.0, math.nan, math.inf),
    "epsilon_min": (0.0, -1.0, math.nan, math.inf),
    "delta": (0.0, 1.0, -0.1, math.nan),
    "alpha": (0.0, -1.0, math.nan, math.inf),
    "beta": (0.0, 1.0, math.nan),
    "gamma": (0.0, 1.0, math.nan),
    "scale": (0.0, -1.0, math.nan, math.inf),
    "v": (1.0, 1.6, math.nan),
    "schedule": ("z",),
    "horizon": (0, -1),
}


@dataclass(frozen=True)
class Case:
    """A policy with settings and arms on which to try it."""

    factory: lookup.Factory
    arms: str = "0.9,0.6,0.4"
    settings: Mapping[str, Any] = field(default_factory=dict)
    levels: str = "choice(0,0.5,1,2)"
    reward_range: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """The policy's name."""
        return self.factory.__name__.replace("_", "-")

    def policy(self, **changed: Any) -> Policy:
        """A fresh policy."""
        sample = {"epsilon": 0.7, "epsilon_min": 1.0, "horizon": ROUNDS, "arms": len(parse_arms(self.arms))}
        wanted = inspect.signature(self.factory).parameters
        given = {name: value for name, value in sample.items() if name in wanted}
        return self.factory(**{**given, **self.settings, **changed})

    def environment(self, arms: str | None = None) -> Bernoulli | Mixed:
        """The arms, for users some of whom the heterogeneous policies do not listen to."""
        return build(parse_arms(arms or self.arms), parse_levels(self.levels), self.reward_range)


def memory(part: Any) -> Iterator[np.ndarray]:
    """The arrays of a part, and of the parts inside it."""
    for value in part:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from memory(value)


def same(one: Policy, two: Policy) -> bool:
    """Whether two policies remember the same, to the last bit."""
    pairs = zip((one.agent, one.curator), (two.agent, two.curator), strict=True)
    return all(np.array_equal(a, b) for left, right in pairs for a, b in zip(memory(left), memory(right), strict=True))


def compiled_run_is_the_python_run(case: Case) -> None:
    """Same pulls, same memory, and generators left in the same state, with bulk draws and without."""
    for singly in (True, None):
        one, two = case.policy(), case.policy()
        ends = []
        for play, policy in ((loop.play, one), (compiled.play, two)):
            rewards, noise, choices = (np.random.default_rng([1, stream]) for stream in range(3))
            pulls = np.zeros((2, policy.arms), np.int64)
            play(
                case.environment(),
                policy.curator,
                policy.agent,
                np.array([7, ROUNDS]),
                pulls,
                rewards,
                noise,
                choices,
                singly,
            )
            ends.append((pulls.tolist(), [rng.bit_generator.state for rng in (rewards, noise, choices)]))
        assert ends[0] == ends[1], f"the compiled run differs (singly={singly})"
        assert same(one, two), f"the compiled run leaves another memory (singly={singly})"


def session_frozen_halfway_is_the_simulation(case: Case) -> None:
    """Asked and told one round at a time, frozen and thawed in the middle of it, a policy ends where the loop does."""
    policy, environment, seed = case.policy(), case.environment(), 2
    noise, choices = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    pulls = np.zeros((1, policy.arms), np.int64)
    rewards = np.random.default_rng(3)
    loop.play(environment, policy.curator, policy.agent, np.array([ROUNDS]), pulls, rewards, noise, choices, True)

    session, rewards, told = (
        Session(case.policy(), seed=seed),
        np.random.default_rng(3),
        np.zeros(policy.arms, np.int64),
    )
    for t in range(ROUNDS):
        arm = session.ask()
        level = environment.population.level(rewards)
        response = environment.draw(arm, rewards)
        if policy.guarantee.trust == "local":  # the device's part
            response = session.policy.curator.respond(response, level, session._noise)
        leveled = "epsilon_min" in policy.settings
        session.tell(None if leveled and level == 0 else response, level=level if leveled and level > 0 else None)
        told[arm] += 1
        if t == ROUNDS // 2:
            session = Session.thaw(session.freeze(), case.factory)
    assert told.tolist() == pulls[0].tolist(), "the session chose other arms than the simulation"
    assert same(session.policy, policy), "the session remembers other things than the simulation"


def stints_are_what_asking_every_round_gives(case: Case) -> None:
    """On one stream of rewards, an agent that proves how long its choices stand chooses as one that is always asked."""
    for seed in range(3):
        asked, proving = case.policy(), case.policy()
        agent = asked.agent
        if "skip" not in agent._fields:  # type: ignore[attr-defined]
            return
        pulls = []
        for policy, part in ((proving, proving.agent), (asked, agent._replace(skip=False))):  # type: ignore[attr-defined]
            rewards, noise, choices = (np.random.default_rng([seed, stream]) for stream in range(3))
            counts = np.zeros((ROUNDS, policy.arms), np.int64)
            marks = np.arange(1, ROUNDS + 1)
            compiled.play(case.environment(), policy.curator, part, marks, counts, rewards, noise, choices, True)
            pulls.append(counts)
        assert np.array_equal(pulls[0], pulls[1]), "a choice that was said to stand would have been another"


def bulk_draws_of_sure_rewards_are_what_asking_every_round_gives(case: Case) -> None:
    """On arms that always pay the same, drawing a stint at once leaves no freedom: every round's choice is the same.

    Where the device itself draws noise for each reward (the local model), the two draw it in another order.
    """
    if case.policy().guarantee.trust == "local":
        return
    for seed in range(20):
        pulls = []
        for singly in (True, None):
            policy = case.policy()
            agent: Any = policy.agent
            if singly and "skip" in agent._fields:
                agent = agent._replace(skip=False)
            sure = case.environment(",".join("10"[arm % 2] for arm in range(policy.arms)))
            rewards, noise, choices = (np.random.default_rng([seed, stream]) for stream in range(3))
            counts, marks = np.zeros((ROUNDS, policy.arms), np.int64), np.arange(1, ROUNDS + 1)
            compiled.play(sure, policy.curator, agent, marks, counts, rewards, noise, choices, singly)
            pulls.append(counts)
        assert np.array_equal(pulls[0], pulls[1]), f"bulk draws choose otherwise (seed {seed})"


def bulk_draws_have_the_law_of_single_ones(case: Case) -> None:
    """The best arm's pulls have the same distribution with bulk draws and without (Kolmogorov-Smirnov, error 1e-6)."""
    samples = []
    for singly in (True, None):
        pulls = []
        for run in range(RUNS):
            policy = case.policy()
            rewards, noise, choices = (np.random.default_rng([run, stream, int(singly is None)]) for stream in range(3))
            counts = np.zeros((1, policy.arms), np.int64)
            parts = (case.environment(), policy.curator, policy.agent)
            compiled.play(*parts, np.array([ROUNDS]), counts, rewards, noise, choices, singly)
            pulls.append(counts[0, 0])
        samples.append(np.sort(pulls))
    grid = np.unique(np.concatenate(samples))
    shares = [np.searchsorted(sample, grid, side="right") / RUNS for sample in samples]
    distance, limit = np.abs(shares[0] - shares[1]).max(), math.sqrt(-math.log(ALPHA / 2) / RUNS)
    assert distance <= limit, f"distance {distance:.3f} of the two distributions is above {limit:.3f}"


def agent_is_blind_to_raw_fields(case: Case) -> None:
    """Poison in the curator's ``raw_`` fields changes no choice."""
    policy, environment = case.policy(), case.environment()
    rewards, noise, choices = (np.random.default_rng([4, stream]) for stream in range(3))
    pulls = np.zeros((1, policy.arms), np.int64)
    loop.play(environment, policy.curator, policy.agent, np.array([300]), pulls, rewards, noise, choices, None)
    poisoned = _copy(policy.curator)
    for name in poisoned._fields:
        if name.startswith("raw_"):
            getattr(poisoned, name)[...] = 10**6
    acts = [_copy(policy.agent).act(curator, 301, np.random.default_rng(5)) for curator in (policy.curator, poisoned)]
    assert acts[0] == acts[1], "the agent looks at raw fields"


def choices_are_in_range(case: Case) -> None:
    """Arms exist, stints last at least a round, and lines are numbers."""
    policy, environment = case.policy(), case.environment()
    rewards, noise, choices = (np.random.default_rng([6, stream]) for stream in range(3))
    t = 0
    while t < ROUNDS:
        arm, stint, line = policy.agent.act(policy.curator, t + 1, choices)
        assert 0 <= arm < policy.arms, f"arm {arm} of {policy.arms} in round {t + 1}"
        assert stint >= 1, f"stint {stint} in round {t + 1}"
        assert not math.isnan(line), f"line {line} in round {t + 1}"
        played = one_by_one(policy.curator, environment, arm, min(stint, ROUNDS - t), line, rewards, noise)
        if played == stint:
            policy.curator.close(arm, noise)
        t += played


def two_starts_share_no_memory(case: Case) -> None:
    """What one run learns, another does not know."""
    one, two = case.policy(), case.policy()
    for left in [*memory(one.agent), *memory(one.curator)]:
        for right in [*memory(two.agent), *memory(two.curator)]:
            assert not np.shares_memory(left, right), "two starts share an array"
    assert same(one, two.fresh()), "a fresh policy is not as it was made"


def reading_a_release_changes_nothing(case: Case) -> None:
    """A release read twice is the same release, and reading leaves no trace."""
    policy = case.policy()
    rewards, noise, choices = (np.random.default_rng([7, stream]) for stream in range(3))
    pulls = np.zeros((1, policy.arms), np.int64)
    loop.play(case.environment(), policy.curator, policy.agent, np.array([500]), pulls, rewards, noise, choices, None)
    curator, before = policy.curator, _copy(policy.curator)
    for arm in range(policy.arms):
        if curator.ready(arm, 1.0):
            reads = [(curator.mean(arm), curator.samples(arm, 0), curator.width(arm, 1.0, 0)) for _ in range(2)]
            assert reads[0] == reads[1], "a release read twice differs"
            assert curator.samples(arm, 5) >= curator.samples(arm, 0), "samples must not fall"
            assert curator.width(arm, 1.0, 5) <= curator.width(arm, 1.0, 0), "the least width must not grow"
            assert curator.lowest(arm, 5) <= curator.mean(arm), "lowest must not exceed the mean"
    assert all(np.array_equal(a, b) for a, b in zip(memory(curator), memory(before), strict=True)), (
        "reading left a trace"
    )


def bad_parameters_are_refused_by_name_and_value(case: Case) -> None:
    """One line with the name and the value, at the start."""
    for name in inspect.signature(case.factory).parameters:
        for value in BAD.get(name, ()):
            try:
                case.policy(**{name: value})
            except InputError as error:
                message = str(error)
                assert name in message, f"'{message}' does not name {name}"
                assert f"{value}" in message, f"'{message}' does not show {value}"
                assert "\n" not in message
            else:
                raise AssertionError(f"{name}={value} is accepted")


def regret_is_below_the_bounds(case: Case) -> None:
    """The mean regret of 40 runs is at most every proven upper bound on it (error below 1e-6 where it is as large).

    A policy without a theorem passes. Those for rewards of any size are tried on normal rewards, those with levels on
    users who are all at ``epsilon_min``: there they have proven bounds.
    """
    policy = case.policy()
    if case.reward_range is not None:
        return  # the theorems are on rewards as they are paid
    common = {name: value for name, value in policy.settings.items() if name not in ("arms", "horizon", "epsilon")}
    trace = simulate(
        case.factory,
        arms="normal(0.9,1)+normal(0.6,1)+normal(0.4,1)" if policy.any_reward else case.arms,
        horizon=20_000,
        epsilon=policy.settings.get("epsilon"),
        options=common,
        levels=f"constant({policy.settings['epsilon_min']!r})" if "epsilon_min" in policy.settings else None,
        runs=40,
        checkpoints=1,
        workers=2,
    )
    mean, error = trace.final_regret.mean(), 6.0 * trace.stderr[-1]
    for bound in trace.bounds():
        if bound.kind == "upper" and bound.checked:
            assert mean - error <= bound.value, f"regret {mean:.4g} exceeds {bound.name}: {bound.value:.4g}"


def guarantee_is_complete(case: Case) -> None:
    """Trust, view, unit and conditions are said, and the promise is what was asked for."""
    policy = case.policy()
    promise = policy.guarantee
    assert promise.trust in ("none", "local", "central")
    assert promise.unit
    assert promise.view
    assert promise.conditions
    assert policy.paper
    assert policy.differs
    if "epsilon" in policy.settings and not policy.settings.get("as_printed"):
        assert promise.epsilon == policy.settings["epsilon"], "the promise is not the epsilon asked for"
    assert 0 <= promise.delta < 1


def exact_verifier_proves_the_claim(case: Case) -> None:
    """The exact worst case at a small size is at most the claim, and, where nothing is lost in composition, near it."""
    if case.policy().guarantee.trust == "none":
        return
    try:
        verdict = _verified(case.factory, tuple(case.settings.items()))
    except NotVerifiableError:
        return  # this noise or this agent has no exact verifier yet; the statistical audit still holds it to its claim
    assert verdict.verdict == "proved", f"the exact verifier says:\n{verdict}"
    assert verdict.released is None or verdict.released <= verdict.claim * (1.0 + 1e-9), (
        f"releases lose more:\n{verdict}"
    )
    least = 0.0 if verdict.delta else 0.9 * verdict.claim  # with a delta, the claim holds for ever and is not reached
    assert verdict.epsilon > least, f"the worst case is far below the claim, or nothing was released:\n{verdict}"


@functools.cache
def _verified(factory: lookup.Factory, settings: tuple[tuple[str, Any], ...]) -> Verdict:
    return exact.verify(_small(Case(factory, settings=dict(settings)), exact.HORIZON))


def _small(case: Case, horizon: int) -> Policy:
    """The policy for two arms and few rounds, its schedule shortened, and all of its epsilon spent."""
    wanted = inspect.signature(case.factory).parameters
    small = {**exact.SHORT, "horizon": horizon, "split_over_arms": False}
    return case.policy(arms=2, **{name: value for name, value in small.items() if name in wanted})


def statistical_audit_does_not_refute_the_claim(case: Case) -> None:
    """A guessing game on what is seen does not refute the promise (a correct policy fails with probability 1e-6)."""
    if case.policy().guarantee.trust != "none":
        verdict = _attacked(case.factory, tuple(case.settings.items()))
        assert not verdict.violated, f"the audit says:\n{verdict}"


@functools.cache
def _attacked(factory: lookup.Factory, settings: tuple[tuple[str, Any], ...]) -> Verdict:
    policy = _small(Case(factory, settings=dict(settings)), 12)
    claim, delta = exact.claim_of(policy, None, None)
    return attack_policy(policy, claim=claim, delta=delta, trials=4000, alpha=ALPHA, horizon=12)


def ledger_accepts_every_release(case: Case) -> None:
    """No reward is charged beyond the claim, no release is drawn twice, and everything that is shown is under noise."""
    promise = case.policy().guarantee
    if promise.trust != "central":
        return
    rounds = RARE_ROUNDS if promise.delta else LEDGER_ROUNDS
    policy, rewards = _small(case, rounds), np.random.default_rng(8).random(rounds).tolist()
    claim, delta = exact.claim_of(policy, None, None)
    ledger = Ledger(claim, delta)
    try:
        releases.enter_all(policy, releases.played(policy, rewards, 9), ledger)
    except NotVerifiableError:
        return  # noise whose cost is not a sum of pure ones
    except LedgerError as error:
        raise AssertionError(f"the ledger refuses: {error}") from error
    assert ledger.entries, "nothing was released"


def docstring_says_what_it_is(case: Case) -> None:
    """A summary, the reference, the guarantee, and an example that ends in a number."""
    text = inspect.getdoc(case.factory) or ""
    lines = text.strip().split("\n")
    assert lines[0].endswith("."), "the docstring has no summary line"
    for word in ("Reference: ", "Guarantee: ", ">>> ", "simulate("):
        assert word in text, f"the docstring has no '{word.strip()}'"
    assert lines[-1].strip().lstrip("-").replace(".", "").isdigit(), "the docstring's example does not end in a number"


def _copy(part: Any) -> Any:
    """The same part with its own memory."""
    return type(part)(
        *(v.copy() if isinstance(v, np.ndarray) else _copy(v) if isinstance(v, tuple) else v for v in part)
    )


#: All laws, by name: every public function of this module that takes a case.
LAWS: dict[str, Callable[[Case], None]] = {
    name: law
    for name, law in list(globals().items())
    if inspect.isfunction(law) and law.__module__ == __name__ and list(inspect.signature(law).parameters) == ["case"]
}
