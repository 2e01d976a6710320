"""Arms that come and go while a policy is live: an agent that chooses among some of them, and a policy with one more.

A policy allows it if its settings do not depend on the number of arms, and its agent's memory has an entry for each
arm. This holds for index policies (UCB, KL-UCB, IMED, Thompson, MOSS, also in the AdaP framework). It does not hold for
elimination, because an epoch compares arms that were played in turn; nor for a policy that splits its epsilon among the
arms, because earlier noise was drawn for another number of arms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpbandits.errors import InputError, check_choice
from dpbandits.parts import arrays
from dpbandits.policies.policy import Policy
from dpbandits.protocols import Agent, Releases
from dpbandits.types import Rng

__all__ = ["Among", "SomeArms", "allows_more_arms", "allows_pauses", "choosing_among", "keep", "with_more_arms"]


class Among(NamedTuple):
    """The releases of some arms, as an agent for that many arms sees them."""

    inner: Releases
    numbers: tuple[int, ...]  # of the arms, in order

    def ready(self, arm: int, exponent: float) -> bool:
        return self.inner.ready(self.numbers[arm], exponent)

    def mean(self, arm: int) -> float:
        return self.inner.mean(self.numbers[arm])

    def lowest(self, arm: int, ahead: int) -> float:
        return self.inner.lowest(self.numbers[arm], ahead)

    def samples(self, arm: int, ahead: int) -> float:
        return self.inner.samples(self.numbers[arm], ahead)

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return self.inner.width(self.numbers[arm], exponent, ahead)

    def upper(self, arm: int, budget: float) -> float:
        return float(self.likelihood.upper(self.numbers[arm], budget))

    def evidence(self, arm: int, mean: float, top: float) -> float:
        return float(self.likelihood.evidence(self.numbers[arm], mean, top))

    def reaches(self, arm: int, mean: float) -> bool:
        return bool(self.likelihood.reaches(self.numbers[arm], mean))

    @property
    def likelihood(self) -> Any:
        """The releases of a curator that also says how well a mean fits, which only some agents ask for."""
        return self.inner


class SomeArms(NamedTuple):
    """An agent that chooses among these arms, and answers with their numbers."""

    agent: Agent
    numbers: tuple[int, ...]

    def act(self, releases: Releases, t: int, rng: Rng) -> tuple[int, int, float]:
        arm, stint, line = self.agent.act(self.seen(releases), t, rng)
        check_choice(arm, stint, len(self.numbers))
        return self.numbers[arm], stint, line

    def seen(self, releases: Releases) -> Among:
        """What the agent sees of all releases."""
        return Among(releases, self.numbers)


class _Memory(NamedTuple):
    """An array of a part, and the axis that has an entry for each arm; None where no axis has."""

    array: Any
    axis: int | None


def allows_pauses(policy: Policy) -> bool:
    """Whether arms of this policy may be left out for a while.

    >>> from dpbandits import policies
    >>> allows_pauses(policies.adap_ucb(2, epsilon=1)), allows_pauses(policies.dp_se(2, epsilon=1, horizon=1000))
    (True, False)
    """
    memory = _by_arm(policy.agent, _one_more(policy).agent, policy.arms)
    return memory is not None and all(each.axis is not None for each in memory)


def allows_more_arms(policy: Policy) -> bool:
    """Whether this policy can be given more arms.

    >>> from dpbandits import policies
    >>> [allows_more_arms(p) for p in (policies.adap_ucb(2, epsilon=1), policies.private_ucb(2, epsilon=1, horizon=9))]
    [True, False]
    """
    grown = _by_arm(policy.curator, _one_more(policy).curator, policy.arms)
    return allows_pauses(policy) and policy.curator.others_stand and grown is not None


def choosing_among(policy: Policy, numbers: tuple[int, ...]) -> Any:
    """An agent that goes on from what the policy's agent remembers, and chooses among these arms alone."""
    if not allows_pauses(policy):
        raise InputError("arm", f"cannot be paused: {policy.name} remembers more than what each arm has released")
    if len(numbers) < 2:
        raise InputError("arm", f"cannot be paused: at least 2 must be left, got {len(numbers)}")
    agent = policy.factory(**{**policy.settings, "arms": len(numbers)}).agent
    for source, (_, target) in zip(_memory(policy), arrays(agent), strict=True):
        target[...] = np.take(source.array, numbers, axis=source.axis)
    return SomeArms(agent, numbers)


def keep(policy: Policy, among: SomeArms) -> None:
    """Put what an agent of some arms remembers into the policy's agent."""
    for target, (_, source) in zip(_memory(policy), arrays(among.agent), strict=True):
        assert target.axis is not None  # choosing_among has refused anything else
        place = (slice(None),) * target.axis + (list(among.numbers),)
        target.array[place] = source


def with_more_arms(policy: Policy) -> Policy:
    """The same policy with one more arm, and all that it remembers of the others."""
    if not allows_more_arms(policy):
        raise InputError("arms", f"cannot be added: the settings of {policy.name} depend on how many arms there are")
    grown = _one_more(policy).on_own_memory()
    for old, new in ((policy.agent, grown.agent), (policy.curator, grown.curator)):
        for memory, (_, target) in zip(_by_arm(old, new, policy.arms) or [], arrays(new), strict=True):
            if memory.axis is None:
                target[...] = memory.array
            else:
                target[(slice(None),) * memory.axis + (slice(0, policy.arms),)] = memory.array
    return grown


def _one_more(policy: Policy) -> Policy:
    return policy.factory(**{**policy.settings, "arms": policy.arms + 1})


def _memory(policy: Policy) -> list[_Memory]:
    return _by_arm(policy.agent, _one_more(policy).agent, policy.arms) or []


def _by_arm(part: Any, grown: Any, arms: int) -> list[_Memory] | None:
    """The memory of a part, paired with that of the part for one more arm; None if anything else differs."""
    if type(part) is not type(grown):
        return None
    found: list[_Memory] = []
    for one, two in zip(part, grown, strict=True):
        if isinstance(one, np.ndarray):
            if one.ndim != two.ndim:
                return None
            changed = [axis for axis in range(one.ndim) if one.shape[axis] != two.shape[axis]]
            if len(changed) > 1 or any((one.shape[axis], two.shape[axis]) != (arms, arms + 1) for axis in changed):
                return None
            found.append(_Memory(one, changed[0] if changed else None))
        elif hasattr(one, "_fields"):
            inner = _by_arm(one, two, arms)
            if inner is None:
                return None
            found += inner
        elif one != two and (one, two) != (arms, arms + 1):
            return None
    return found
