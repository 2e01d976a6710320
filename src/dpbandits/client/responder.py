"""What a server tells a client to do with a reward, as a curator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpbandits.errors import InputError
from dpbandits.exact import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    Noise,
    PiecewiseCurator,
    SigmoidCurator,
    as_float,
)

__all__ = ["MECHANISMS", "responder_for"]

#: What a server may ask for.
MECHANISMS: dict[str, Callable[[str, Noise | None], LocalCurator]] = {
    "bernoulli": BernoulliCurator,
    "laplace": LaplaceCurator,
    "piecewise": PiecewiseCurator,
}


def responder_for(block: Mapping[str, Any], noise: Noise | None = None) -> Callable[[object], int]:
    """The function from rewards to responses that the ``curator`` of a decision describes.

    A reward is mapped from its range to [0, 1] and clipped. Then the curator is applied, behind the logistic function
    where the experiment takes any reward. A reward that is not a number is answered like the lowest one.

    >>> respond = responder_for({"mechanism": "bernoulli", "epsilon": "1/2", "range": [-10, 10], "sigmoid": False})
    >>> respond(7.5) in (0, 1)
    True
    """
    mechanism, epsilon, ends = block.get("mechanism"), block.get("epsilon"), block.get("range")
    make = MECHANISMS.get(str(mechanism))
    if make is None:
        raise InputError("mechanism", f"must be one of {', '.join(MECHANISMS)}, got {mechanism!r:.80}")
    if not isinstance(epsilon, str):
        raise InputError("epsilon", f"must be a text such as '0.1' or '1/3', got {epsilon!r:.80}")
    inner = make(epsilon, noise)
    curator = SigmoidCurator(inner) if block.get("sigmoid") else inner
    if ends is None:
        return lambda reward: curator.respond(as_float(reward))
    low, high = float(ends[0]), float(ends[1])
    if not low < high:
        raise InputError("range", f"must have low < high, got {low:g} and {high:g}")

    def respond(reward: object) -> int:
        value = (as_float(reward) - low) / (high - low)
        return curator.respond(min(value, 1.0) if value > 0.0 else 0.0)

    return respond
