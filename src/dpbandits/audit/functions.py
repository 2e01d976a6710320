"""The verifier's own versions of the functions that bring a reward into [0, 1]."""

from __future__ import annotations

from typing import Any

from dpbandits import numerics
from dpbandits.audit.refusals import Refused
from dpbandits.audit.symbols import ON_GRID, REWARD, SIGMOID, UNIT, Num, Steps, span
from dpbandits.exact import SystemNoise

__all__ = ["stand_ins"]


def unit(x: Any) -> Any:
    """A bare reward becomes a symbol in [0, 1]; a number that is known to be in [0, 1] stays as it is."""
    if isinstance(x, Num) and not _bare(x) and x.terms and all(term[0] == REWARD for term in x.terms):
        low, high = span(x)
        if low >= 0.0 and high <= 1.0:
            return x.again()  # not x itself: floats may be above 1 where the number on paper is not
    return _brought(x, (UNIT,)) if _bare(x) else numerics.unit(x)


def sigmoid(x: Any) -> Any:
    """The same for the logistic function. Its result is a different symbol from ``unit`` of the same reward."""
    if isinstance(x, Num) and not _bare(x):
        raise Refused("the logistic function is followed only on a reward itself")
    return _brought(x, (SIGMOID,)) if _bare(x) else numerics.sigmoid(x)


def on_grid(x: Any) -> Any:
    """A reward in [0, 1], rounded to the grid: another symbol, in [0, 1] too."""
    if not isinstance(x, Num):
        return numerics.on_grid(x)
    terms = list(x.terms)
    if (
        len(terms) == 1
        and terms[0][0] == REWARD
        and terms[0][2]
        and x.const == 0.0
        and x.factor * x.terms[terms[0]] == 1
    ):
        return _brought(x, (*terms[0][2], ON_GRID))
    raise Refused("a number that is not a single reward in [0, 1] is put on the grid")


def _bare(x: Any) -> bool:
    """Whether this is a reward itself, about which nothing is assumed."""
    if not isinstance(x, Num) or len(x.terms) != 1 or x.const != 0.0:
        return False
    [(term, c)] = x.terms.items()
    return term[0] == REWARD and not term[2] and x.factor * c == 1


def _brought(x: Num, steps: Steps) -> Num:
    [term] = x.terms
    return Num(x.log, 0.0, 1, {(REWARD, term[1], steps): 1}, 1.0, grid=steps[-1] != SIGMOID)


def stand_ins(source: Any) -> dict[Any, Any]:
    """The package's functions and their symbolic replacements; ``source`` replaces a curator's own exact noise."""
    return {numerics.unit: unit, numerics.sigmoid: sigmoid, numerics.on_grid: on_grid, SystemNoise: source}
