"""A published algorithm: an agent paired with a curator, with claim, citation, and what differs from the print."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec

from dpbandits.errors import at_least
from dpbandits.privacy.guarantee import Guarantee
from dpbandits.protocols import Agent, Curator

P = ParamSpec("P")


class Parts(NamedTuple):
    """What a policy is made of."""

    agent: Agent
    curator: Curator
    unused: tuple[str, ...] = ()  # settings that make no difference here: they are not kept


@dataclass(frozen=True)
class Policy:
    """One algorithm, ready to start: fresh parts, and what is said about them."""

    name: str
    settings: dict[str, Any]  # what it was made with, ``arms`` included
    agent: Agent
    curator: Curator
    paper: str
    differs: str
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
        """The most rounds it can be played, where it was made for so many."""
        return self.settings.get("horizon")

    @property
    def any_reward(self) -> bool:
        """Whether rewards may lie outside [0, 1]."""
        return bool(getattr(self.curator, "sigmoid", False))

    def fresh(self) -> Policy:
        """The same policy with no memory."""
        return self.factory(**self.settings)


def published(paper: str, differs: str = "nothing") -> Callable[[Callable[P, Parts]], Callable[P, Policy]]:
    """Make a function that builds an agent and a curator into a policy of that name."""

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
            return Policy(name, kept, parts.agent, parts.curator, paper, differs, factory)

        factory.paper, factory.differs = paper, differs  # type: ignore[attr-defined]
        factory.__signature__ = signature.replace(return_annotation=Policy)  # type: ignore[attr-defined]
        return factory

    return decorate
