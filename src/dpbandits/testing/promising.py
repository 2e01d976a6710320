"""Laws of promises: what a policy says about itself is complete, and audits do not refute it."""

from __future__ import annotations

import functools
import inspect
from fractions import Fraction
from typing import Any

import numpy as np

from dpbandits.audit import attack, releases, verify
from dpbandits.audit.blindness import read_agent
from dpbandits.audit.instruments import NotVerifiableError
from dpbandits.audit.memory import RAW, named_arrays
from dpbandits.audit.reading import Looks
from dpbandits.audit.refusals import Refused
from dpbandits.audit.subjects import claim_of
from dpbandits.audit.verdict import Verdict
from dpbandits.audit.witness import different_action
from dpbandits.formats import plural
from dpbandits.parts import copied
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy
from dpbandits.privacy.ledger import Ledger, LedgerError
from dpbandits.privacy.users import ONE_USER
from dpbandits.testing.case import Case, generators, play_policy

LEDGER_ROUNDS, RARE_ROUNDS = 64, 400  # where the claim has a delta, releases are rare
ALPHA = 1e-6  # probability with which the statistical law refuses a correct policy


def agent_is_blind_to_raw_fields(case: Case) -> None:
    """The agent's choices, and the answers that it gets, depend only on released memory.

    The source is read: an agent may ask the curator questions, and the answers may read no ``raw_`` field. Code
    that cannot be read is played: with other raw memory, and with rewards that differ while all releases are the same.
    """
    policy = case.policy()
    try:
        read_agent(policy)
    except Looks as found:
        raise AssertionError(f"the agent looks at raw fields: {found}") from None
    except Refused:
        pass  # it is played
    rng = np.random.default_rng(5)
    for rounds in (3, 17, 60, 300):
        play_policy(policy, case.environment(), np.array([rounds]), generators(4), quick=False)
        told = _told(policy, policy.curator, rounds)
        for _ in range(4):
            changed: Any = copied(policy.curator)
            for name, array in named_arrays(changed):
                if name.startswith(RAW):
                    array[...] = (array + rng.integers(1, 50, array.shape)) % (10 ** rng.integers(1, 7))
            assert told == _told(policy, changed, rounds), "the agent looks at raw fields"
        policy = case.policy()
    seen = different_action(policy)
    assert seen is None, f"the agent depends on rewards beside what is released: {seen}"


def _told(policy: Policy, curator: Any, t: int) -> str:
    """What the agent would do now, and all that it can ask."""
    agent: Any = copied(policy.agent)
    acts = agent.act(curator, t + 1, np.random.default_rng(5))
    answers = [
        (curator.mean(arm), curator.samples(arm, ahead), curator.width(arm, 1.0, ahead), curator.lowest(arm, ahead))
        for arm in range(policy.arms)
        for ahead in (0, 3)
        if curator.ready(arm, 1.0)
    ]
    return repr((acts, [array.tolist() for _, array in named_arrays(agent)], answers))


def guarantee_is_complete(case: Case) -> None:
    """The guarantee names trust, view, unit and conditions, and its epsilon is the one that was asked for.

    It is larger with the options of which the policy's declaration says so.
    """
    policy = case.policy()
    promise = policy.guarantee
    assert promise.trust in ("none", "local", "central")
    assert promise.unit
    assert promise.view
    assert promise.conditions
    assert policy.traits.paper
    assert policy.traits.differs
    if policy.overspends:
        assert promise.epsilon is not None
        assert promise.epsilon > policy.settings["epsilon"], "the promise is not above the epsilon asked for"
    elif policy.traits.private and "epsilon" in policy.settings:
        assert promise.epsilon == policy.settings["epsilon"], "the promise is not the epsilon asked for"
    assert 0 <= promise.delta < 1


def promise_for_users_is_made_from_the_noise_of_rewards(case: Case) -> None:
    """With several rewards for each user, the promise is the user's, and the noise is for a share of it."""
    one = case.policy()
    if one.guarantee.trust == "none":
        return
    asked = one.guarantee.epsilon
    for rewards in (1, 3, 10):
        policy = case.policy(rewards_per_user=rewards)
        promise, each = policy.guarantee, policy.curator.guarantee()
        assert promise.unit == ONE_USER, f"the promise is for {promise.unit}"
        assert f"{plural(rewards, 'reward')}".replace("1 reward", "one reward") in promise.conditions
        assert promise.delta <= one.guarantee.delta * (1 + 1e-9)
        if asked is None or each.epsilon is None or promise.epsilon is None:
            continue
        assert abs(promise.epsilon - asked) <= 1e-9 * asked, f"the promise is {promise.epsilon}, asked was {asked}"
        assert Fraction(each.epsilon) * rewards <= Fraction(asked), "the noise of a reward is for more than its share"
        assert each.epsilon > 0.999999 * asked / rewards, "the noise of a reward is for much less than its share"


def exact_verifier_proves_the_claim(case: Case) -> None:
    """The exact worst case is at most the claim, and, where nothing is lost in composition, near it.

    Where there is no proof, because the noise or the code cannot be followed, there must be no witness either.
    """
    if case.policy().guarantee.trust == "none":
        return
    verdict = _verified(case.factory, tuple(case.settings.items()))
    assert not verdict.violated, f"the exact verifier says:\n{verdict}"
    if verdict.verdict not in ("proved", "vacuous"):
        return
    least = 0.0 if verdict.delta else 0.9 * verdict.claim  # with a delta, the claim holds for ever and is not reached
    worst = max(verdict.epsilon or 0.0, verdict.released or 0.0)
    assert worst > least, f"the worst case is far below the claim, or nothing was released:\n{verdict}"


@functools.cache
def _verified(factory: lookup.Factory, settings: tuple[tuple[str, Any], ...]) -> Verdict:
    return verify(_small(Case(factory, settings=dict(settings)), 64))


def _small(case: Case, horizon: int) -> Policy:
    """The policy for two arms and few rounds, its schedule shortened, and all of its epsilon spent."""
    traits = lookup.traits(case.factory)
    small: dict[str, Any] = {**traits.short, **traits.tight}
    if lookup.takes(case.factory, "horizon"):
        small["horizon"] = horizon
    return case.policy(arms=2, **small)


def statistical_audit_does_not_refute_the_claim(case: Case) -> None:
    """A guessing game on what is seen does not refute the promise (a correct policy fails with probability 1e-6)."""
    if case.policy().guarantee.trust != "none":
        verdict = _attacked(case.factory, tuple(case.settings.items()))
        assert not verdict.violated, f"the audit says:\n{verdict}"


@functools.cache
def _attacked(factory: lookup.Factory, settings: tuple[tuple[str, Any], ...]) -> Verdict:
    policy = _small(Case(factory, settings=dict(settings)), 12)
    return attack(policy, trials=4000, alpha=ALPHA, horizon=12)


def ledger_accepts_every_release(case: Case) -> None:
    """No reward is charged beyond the claim, no release is drawn twice, and everything that is shown is under noise."""
    promise = case.policy().guarantee
    if promise.trust != "central":
        return
    rounds = RARE_ROUNDS if promise.delta else LEDGER_ROUNDS
    policy, rewards = _small(case, rounds), np.random.default_rng(8).random(rounds).tolist()
    ledger = Ledger(*claim_of(policy, None, None))
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
