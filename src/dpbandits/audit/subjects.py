"""The subject of an audit: a policy, given by name or as an object, and the claim to check."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpbandits.audit.refusals import Refused
from dpbandits.audit.watch import beat
from dpbandits.checks import fraction, positive
from dpbandits.environments.numbers import real
from dpbandits.errors import ChoiceError, InputError, check_choice
from dpbandits.exact import SystemNoise
from dpbandits.parts import arrays
from dpbandits.policies import lookup
from dpbandits.policies.policy import Policy, Traits
from dpbandits.privacy import Guarantee

__all__ = ["ARMS", "Subject", "claim_of", "for_arms", "same_part", "subject", "try_out", "users_fault", "with_arms"]

Result = TypeVar("Result")
ARMS = (2, 3, 5)  # for which policies are verified
FEW_ROUNDS = 24  # of the plays that must not fail


class Subject(NamedTuple):
    """A policy to audit, and a note on the options that were set to shorten its schedule."""

    policy: Policy
    note: str


def subject(
    policy: str | lookup.Factory | Policy,
    *,
    epsilon: float | str | None = None,
    horizon: int,
    options: Mapping[str, Any] | None = None,
    rewards_per_user: int | None = None,
    user_delta: float | None = None,
    short: bool = False,
) -> Subject:
    """The policy to audit, for two arms. A ``Policy`` object is used as it is.

    With ``short``, the options that its declaration names for this purpose shorten its schedule, unless given.

    >>> subject("dp-se", epsilon=1.0, horizon=8, short=True).note
    '; epoch_factor 1e-06, which shortens its schedule'
    """
    if isinstance(policy, Policy):
        for name, asked in (("rewards_per_user", rewards_per_user), ("user_delta", user_delta)):
            if asked is not None and asked != policy.settings.get(name):
                raise InputError("policy", f"is an instance: set {name} where it is made, got {asked}")
        return Subject(policy, "")
    factory, given = lookup.find(policy), dict(options or {})
    about = getattr(factory, "traits", None)
    shorter = about.short if short and isinstance(about, Traits) else {}
    added = {name: value for name, value in shorter.items() if name not in given}
    made = users_fault(
        "cannot be made",
        lambda: lookup.make(
            factory,
            arms=2,
            epsilon=None if epsilon is None else real("epsilon", epsilon),
            horizon=horizon,
            rewards_per_user=rewards_per_user,
            user_delta=user_delta,
            given={**given, **added},
        ),
    )
    if not isinstance(made, Policy):
        raise InputError("policy", f"must be made by a function with @published, got {type(made).__name__}")
    note = "".join(f"; {option} {value:g}, which shortens its schedule" for option, value in added.items())
    return Subject(made, note)


def users_fault(what: str, call: Callable[[], Result]) -> Result:
    """The result of code that may be a user's own. Whatever it raises is one line about the policy."""
    try:
        return call()
    except InputError:
        raise
    except ChoiceError as error:
        raise InputError("policy", f"{what}: {error}") from None
    except Refused as refusal:
        raise InputError("policy", f"{what}: {refusal}") from None
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())[:200]
        raise InputError("policy", f"{what}: {type(error).__name__}{': ' if text else ''}{text}") from error


def try_out(policy: Policy, rounds: int = FEW_ROUNDS) -> None:
    """Play a policy for a few of these rounds on plain rewards and noise. A fault in its own code is one line.

    The agent gets the curator itself, and not ``OneByOne``: an agent that looks at more than releases shall be refuted,
    and not fail here.
    """

    def play() -> None:
        agent, curator = copy.deepcopy(policy.agent), copy.deepcopy(policy.curator)
        noise, choices = np.random.default_rng(5), np.random.default_rng(6)
        left, arm = 0, 0
        for t in range(min(rounds, FEW_ROUNDS)):
            beat()
            if left == 0:
                arm, left, _ = agent.act(curator, t + 1, choices)
                check_choice(arm, left, policy.arms)
            curator.add(arm, curator.respond(float(t % 2), 1.0, noise), 1.0, noise)
            left -= 1
            if left == 0:
                curator.close(arm, noise)

    users_fault("fails when it is played", play)


def with_arms(policy: Policy, arms: int) -> Policy | None:
    """The same policy for another number of arms; None if its function does not make this policy."""
    try:
        if not (same_part(policy.fresh().agent, policy.agent) and same_part(policy.fresh().curator, policy.curator)):
            return None
        return policy.factory(**{**policy.settings, "arms": arms})
    except (Exception, SystemExit):  # a fault in a user's own function, which then is not used
        return None


def for_arms(policy: Policy) -> list[Policy]:
    """The policy, and the same for other numbers of arms, as far as its function makes them."""
    others = [with_arms(policy, arms) for arms in ARMS if arms != policy.arms]
    return [policy, *(made for made in others if made is not None)]


def same_part(one: Any, two: Any) -> bool:
    """Whether two parts are of the same kind, with the same parameters and memory."""
    if type(one) is not type(two):
        return False
    if not isinstance(one, tuple):
        return True  # it is no part, and refused for that
    memory = zip(arrays(one), arrays(two), strict=True)
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for (_, a), (_, b) in memory):
        return False
    for a, b in zip(one, two, strict=True):
        alike = same_part(a, b) if hasattr(a, "_fields") else isinstance(a, np.ndarray) or a is b or a == b
        alike = alike or (type(a) is type(b) and (type(a) is SystemNoise or a != a))
        if not alike:
            return False
    return True


def claim_of(policy: Policy, claim: float | None, delta: float | None) -> tuple[float, float]:
    """The claim to check: the given one, or else the policy's guarantee."""
    promise = users_fault("has no guarantee", lambda: policy.guarantee)
    if not isinstance(promise, Guarantee):
        raise InputError("policy", f"must have a guarantee() that returns a Guarantee, got {type(promise).__name__}")
    for number in (promise.epsilon, promise.delta):
        if not isinstance(number, int | float | None) or number != number:
            raise InputError("policy", f"must promise an epsilon and a delta that are numbers, got {number!r}")
    if promise.trust not in ("none", "local", "central"):
        raise InputError("policy", f"must trust none, local or central, got {promise.trust!r}")
    if claim is None:
        claim = promise.epsilon
        if claim is None:  # users have levels: of those whose responses are used, the least
            claim = 1.0 if policy.threshold is None else policy.threshold
        if math.isinf(claim):
            raise InputError("claim", f"is required, because {policy.name} promises nothing, got none")
    if delta is None:
        delta = promise.delta
    return positive("claim", claim), fraction("delta", delta, zero=True)
