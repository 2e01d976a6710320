"""What an experiment would lose, by a few simulations: the process that ``planner`` asks."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from fractions import Fraction
from math import ceil
from typing import Any

from dpbandits.environments.levels import HIGHEST, Levels
from dpbandits.errors import InputError
from dpbandits.exact import rational
from dpbandits.planning.grid import Outcome, play, without_privacy
from dpbandits.planning.question import Question, ask
from dpbandits.policies import lookup
from dpbandits.service.planner import LIMIT

__all__ = ["answer"]

RUNS = 20
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # multiples of the epsilon that is asked about


@dataclasses.dataclass(frozen=True)
class OfLevels(Question):
    """A question about users with levels of their own, each as likely as the others.

    Where another epsilon is played, all levels are multiplied, so that it is the highest of them.
    """

    given: tuple[float, ...] = ()

    def levels(self, epsilon: float, refuse: Fraction) -> Levels:
        """The population at this highest level."""
        return Levels.of(min(level * epsilon / max(self.given), HIGHEST) for level in self.given)


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """What a policy loses, what privacy and trust change, and the loss at other epsilons.

    >>> found = answer({"arms": 2, "best": 0.5, "gap": 0.3, "traffic": 100, "days": 10, "policy": "ldp-ucb-b",
    ...                 "epsilon": 1.0})
    >>> found["trust"], found["other"]["trust"], [point["epsilon"] for point in found["curve"]]
    ('local', 'central', [0.25, 0.5, 1.0, 2.0, 4.0])
    """
    name, epsilon, levels = given.pop("policy"), given.pop("epsilon"), _levels(given.pop("levels", None))
    takes_epsilon, leveled = lookup.takes(name, "epsilon"), lookup.traits(name).levels is not None
    if takes_epsilon and epsilon is None:
        raise InputError("epsilon", f"is required by {name}, got none")
    if leveled and not any(levels):
        raise InputError("levels", f"is required by {name}: at least one above 0, got none")
    asked = {**given, "arms": str(given["arms"]), "runs": RUNS, "seed": 0}
    at = max(levels) if leveled else epsilon if takes_epsilon else None
    plain = question = ask(**asked, epsilon=1.0 if at is None else at)
    if leveled:
        plain, question = _with_levels(plain, levels)
    main = play(question, name, at, question.refuse, 1)
    trust = lookup.sample(name).guarantee.trust
    other = "central" if trust == "local" else "local"
    rival = play(question, _recommended(other), at, question.refuse, 1) if takes_epsilon else None
    curve = [] if at is None else _curve(main, question, at)
    return {
        **_shown(main, question),
        "trust": trust,
        "rounds": question.horizon,
        "days": given.get("days"),
        "runs": RUNS,
        "paid": max(question.arms.means) * question.horizon,
        "free": None if at is None else _shown(without_privacy(plain, main, 1), question),
        "other": None if rival is None else _shown(rival, question),
        "curve": [_shown(one, question) for one in curve],
        "levels": levels if leveled else None,
        "at_random": {"lost": question.at_random, "loss": question.loss(question.at_random)},
        "caution": main.caution,
    }


def _with_levels(plain: Question, levels: tuple[float, ...]) -> tuple[Question, Question]:
    """The question for users of whom those at level 0 refuse, and the same for the population of these levels."""
    plain = dataclasses.replace(plain, refuse=Fraction(levels.count(0.0), len(levels)))
    fields = {one.name: getattr(plain, one.name) for one in dataclasses.fields(plain)}
    return plain, OfLevels(**fields, given=levels)


def _curve(main: Outcome, question: Question, epsilon: float) -> list[Outcome]:
    """The same policy at multiples of its epsilon."""
    return [
        main if step == 1.0 else play(question, main.candidate, epsilon * step, question.refuse, 1) for step in STEPS
    ]


def _levels(texts: list[str] | None) -> tuple[float, ...]:
    return tuple(0.0 if text == "0" else float(rational("levels", text)) for text in texts or ())


def _recommended(trust: str) -> str:
    """The policy to try first in a trust model, local or central."""
    recommended = (name for name in lookup.names() if lookup.traits(name).recommended)
    return next(name for name in recommended if lookup.sample(name).guarantee.trust == trust)


def _shown(outcome: Outcome, question: Question) -> dict[str, Any]:
    return {
        "policy": outcome.policy,
        "trust": outcome.trust,
        "epsilon": outcome.epsilon,
        "lost": outcome.regret,
        "error": 2.0 * outcome.stderr,
        "loss": question.loss(outcome.regret),
        "one_in_twenty": outcome.tail.quantile,
        "settled": outcome.settled,
    }


def main() -> None:
    """Answer questions from the standard input, a line each."""
    os.nice(5)  # decisions come first
    for line in sys.stdin:
        signal.alarm(ceil(2 * LIMIT))  # where the server was killed, nobody else ends it
        try:
            found: dict[str, Any] = answer(json.loads(line))
        except InputError as error:
            found = {"refused": [error.parameter, error.text]}
        signal.alarm(0)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
