"""A published algorithm: an agent paired with a curator, with claim, citation, and what differs from the print."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, ParamSpec

from dpbandits.checks import at_least
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Agent, Curator

__all__ = ["Cost", "Mechanism", "Parts", "Policy", "Traits", "published"]

P = ParamSpec("P")

#: How a response is made private in the local model.
Mechanism = Literal["laplace", "bernoulli"]

#: What a simulated round costs: a draw for each stint, a draw for many rounds, divergences for many rounds, a noise for
#: each round, a counter for each round, or work on every arm in every round.
Cost = Literal["stint", "bulk", "divergence", "noise", "counter", "arms"]


@dataclass(frozen=True)
class Traits:
    """What is known about an algorithm before it is made with any settings."""

    paper: str
    differs: str = "nothing"  # from the print
    cost: Cost = "arms"
    levels: Mechanism | None = None  # where each user has a level: how a response at that level is made private
    any_reward: bool = False  # whether rewards may lie outside [0, 1]
    unbounded: str | Mapping[str, Any] = ""  # where they may not: the policy, or the options, with which they may
    sample: Mapping[str, Any] = field(default_factory=dict)  # values for required options, to try it out with
    short: Mapping[str, Any] = field(default_factory=dict)  # options for an audit of few rounds; as private as others
    tight: Mapping[str, Any] = field(default_factory=dict)  # options with which all of epsilon is spent
    in_turns: bool = False  # whether a simulation plays the arms of an epoch in turns: the agent says how many
    caution: str = ""  # what goes badly wrong in a small share of the runs, and how often
    advised: Callable[[int], Mapping[str, Any]] | None = None  # options that a careful user sets, by the horizon

    @property
    def slow(self) -> bool:
        """Whether a simulation takes longer than those of most other policies together."""
        return self.cost == "arms"


class Parts(NamedTuple):
    """What a policy is made of."""

    agent: Agent
    curator: Curator
    unused: tuple[str, ...] = ()  # settings that make no difference here: they are not kept


@dataclass(frozen=True, eq=False)
class Policy:
    """One algorithm, ready to start: fresh parts, and what is said about them."""

    name: str
    settings: dict[str, Any]  # what it was made with, ``arms`` included
    agent: Agent
    curator: Curator
    traits: Traits
    factory: Callable[..., Policy]  # what makes it

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from the curator's own numbers."""
        return self.curator.guarantee()

    @property
    def arms(self) -> int:
        """How many arms it chooses from."""
        return int(self.settings["arms"])

    @property
    def horizon(self) -> int | None:
        """The most rounds it can be played, where it was made for a number of rounds."""
        return self.settings.get("horizon")

    @property
    def options(self) -> dict[str, Any]:
        """The settings of its own: everything but the arms and the horizon."""
        return {name: value for name, value in self.settings.items() if name not in ("arms", "horizon")}

    @property
    def any_reward(self) -> bool:
        """Whether rewards may lie outside [0, 1]."""
        needed = self.traits.unbounded
        if isinstance(needed, str):
            return self.traits.any_reward
        return all(self.settings[name] == value for name, value in needed.items())

    def fresh(self) -> Policy:
        """The same policy with no memory."""
        return self.factory(**self.settings)


def published(
    paper: str, differs: str = "nothing", **traits: Any
) -> Callable[[Callable[P, Parts]], Callable[P, Policy]]:
    """Make a function that builds an agent and a curator into a policy of that name, with these ``Traits``."""
    about = Traits(paper, differs, **traits)

    def decorate(build: Callable[P, Parts]) -> Callable[P, Policy]:
        signature = inspect.signature(build)

        @functools.wraps(build)
        def factory(*args: P.args, **kwargs: P.kwargs) -> Policy:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            bound.arguments["arms"] = at_least("arms", bound.arguments["arms"], 2)
            parts = build(*bound.args, **bound.kwargs)
            name = build.__name__.replace("_", "-")
            kept = {key: value for key, value in bound.arguments.items() if key not in parts.unused}
            return Policy(name, kept, parts.agent, parts.curator, about, factory)

        factory.traits = about  # type: ignore[attr-defined]
        factory.__signature__ = signature.replace(return_annotation=Policy)  # type: ignore[attr-defined]
        return factory

    return decorate
