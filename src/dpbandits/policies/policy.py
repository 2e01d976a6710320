"""A published algorithm: an agent paired with a curator, with claim, citation, and what differs from the print."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, ParamSpec

from dpbandits.checks import at_least, nearest
from dpbandits.display import card, shortened
from dpbandits.errors import InputError
from dpbandits.privacy.guarantee import SHOWS, Guarantee
from dpbandits.protocols import Agent, Curator

__all__ = ["Cost", "Mechanism", "Parts", "Policy", "Traits", "published"]

P = ParamSpec("P")

#: What a parameter is for, where a policy is made without it.
NEEDED = {"horizon": ": how many rounds it will be played", "arms": ": how many there are"}
LONGEST_TITLE = 30

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
    unbounded: str | Mapping[str, Any] = ""  # if they may not: another policy, or options of this one, that allow it
    sample: Mapping[str, Any] = field(default_factory=dict)  # values for required options, to try it out with
    short: Mapping[str, Any] = field(default_factory=dict)  # options for an audit of few rounds; as private as others
    tight: Mapping[str, Any] = field(default_factory=dict)  # options with which all of epsilon is spent
    in_turns: bool = False  # whether a simulation plays the arms of an epoch in turns: the agent says how many
    practical: Mapping[str, Any] = field(default_factory=dict)  # options that often lose less, outside the theorem
    caution: str = ""  # what goes badly wrong in a small share of the runs, and how often
    advised: Callable[[int], Mapping[str, Any]] | None = None  # options that a careful user sets, by the horizon
    stops: bool = False  # whether it stops when it knows the best arm; its option ``beta`` bounds how often it errs
    title: str = ""  # as papers write it; empty: what its docstring begins with, before the colon

    @property
    def slow(self) -> bool:
        """Whether a simulation takes longer than those of most other policies together."""
        return self.cost == "arms"


class Parts(NamedTuple):
    """What a policy is made of."""

    agent: Agent
    curator: Curator
    unused: tuple[str, ...] = ()  # settings that have no effect here, and are not kept


@dataclass(frozen=True, eq=False)
class Policy:
    """One algorithm, ready to start: fresh parts, and what is said about them."""

    name: str
    settings: dict[str, Any]  # the arguments it was made with, ``arms`` included
    agent: Agent
    curator: Curator
    traits: Traits
    factory: Callable[..., Policy]  # what makes it

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from the curator's own numbers."""
        return self.curator.guarantee()

    @property
    def title(self) -> str:
        """The name as papers write it, for figures."""
        return self.traits.title or self.name

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

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return card(self._lines(), self.guarantee.picture(), SHOWS)

    def _lines(self) -> list[str]:
        settings = ", ".join(
            f"{name}={f'{value:g}' if isinstance(value, float) else repr(value)}"
            for name, value in self.settings.items()
        )
        lines = [f"Policy: {self.name}({shortened(settings, 90)})", f"  {self.traits.paper}"]
        promise = self.guarantee
        lines.append("  not private" if promise.trust == "none" else f"  {promise.trust} privacy, {promise.size}")
        if self.horizon is not None:
            lines.append(f"  for at most {self.horizon:,} rounds")
        return lines


def published(
    paper: str, differs: str = "nothing", **traits: Any
) -> Callable[[Callable[P, Parts]], Callable[P, Policy]]:
    """Make a function that builds an agent and a curator into a policy of that name, with these ``Traits``."""

    def decorate(build: Callable[P, Parts]) -> Callable[P, Policy]:
        signature, name = inspect.signature(build), build.__name__.replace("_", "-")
        about = Traits(paper, differs, **{"title": _title(build), **traits})

        @functools.wraps(build)
        def factory(*args: P.args, **kwargs: P.kwargs) -> Policy:
            bound = _bound(name, signature, args, kwargs)
            bound.arguments["arms"] = at_least("arms", bound.arguments["arms"], 2)
            parts = build(*bound.args, **bound.kwargs)
            kept = {key: value for key, value in bound.arguments.items() if key not in parts.unused}
            return Policy(name, kept, parts.agent, parts.curator, about, factory)

        factory.traits = about  # type: ignore[attr-defined]
        factory.__signature__ = signature.replace(return_annotation=Policy)  # type: ignore[attr-defined]
        return factory

    return decorate


def _bound(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """The arguments of a policy by name. What is missing or unknown is refused in one line."""
    for given in kwargs:
        if given not in signature.parameters:
            raise InputError(given, f"is not a parameter of {name}: {nearest(given, signature.parameters)}")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        taken = [*list(signature.parameters)[: len(args)], *kwargs]
        needed = [key for key, one in signature.parameters.items() if one.default is inspect.Parameter.empty]
        for missing in (key for key in needed if key not in taken):
            raise InputError(missing, f"is required by {name}{NEEDED.get(missing, '')}, got none") from None
        raise InputError("policy", f"{name}: {error}") from None
    bound.apply_defaults()
    return bound


def _title(build: Callable[..., Any]) -> str:
    """What the first line of a docstring names before its colon; empty if there is none, or if it is a sentence."""
    head, colon, _ = (inspect.getdoc(build) or "").split("\n")[0].partition(":")
    return head if colon and len(head) <= LONGEST_TITLE else ""
