"""Releases in which decisions that wait for a response count."""

from __future__ import annotations

import math
from typing import Generic, NamedTuple, TypeVar

from dpbandits.curators.rounds import PassedOn
from dpbandits.protocols import Curator, Releases
from dpbandits.types import Integers

__all__ = ["Awaiting", "awaiting"]

Inner = TypeVar("Inner", bound=Releases)


def awaiting(curator: Curator, out: Integers, window: float) -> Releases:
    """The releases that an agent sees. With a window, decisions that wait for a response (``out``) count in them.

    Without a window, decisions whose responses are lost would count for ever, and an arm could be given up because of
    responses that never came. The curator says whether they can count: ``counts_ahead``.
    """
    if not curator.counts_ahead or window == math.inf:
        return curator
    return Awaiting(curator, out)


class AwaitingFields(NamedTuple, Generic[Inner]):
    """The fields of ``Awaiting``."""

    inner: Inner
    out: Integers  # (arms,): decisions that wait for a response


class Awaiting(PassedOn, AwaitingFields[Inner]):
    """The same releases, where decisions that wait for a response count as responses that left the mean unchanged.

    An index then trusts an arm's mean more while many of its responses are on their way, so that the same arm is not
    handed to everybody meanwhile.
    """

    __slots__ = ()

    def samples(self, arm: int, ahead: int) -> float:
        return self.inner.samples(arm, ahead + self.out[arm])

    def width(self, arm: int, exponent: float, ahead: int) -> float:
        return self.inner.width(arm, exponent, ahead + self.out[arm])
