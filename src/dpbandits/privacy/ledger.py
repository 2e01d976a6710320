"""A ledger of privacy costs: every release lists the rewards that it uses and what it costs each of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from dpbandits.checks import fraction
from dpbandits.exact.rational import Exactly, rational
from dpbandits.privacy.composition import heterogeneous

__all__ = ["Entry", "Ledger", "LedgerError"]

#: The name of a release or of a reward: any immutable value that JSON can represent.
Name = Hashable


class LedgerError(RuntimeError):
    """A release was refused, before it was entered: it would be drawn twice, or exceed the claim."""


class Entry(NamedTuple):
    """One release: its name, and what it costs each reward that it uses."""

    release: Name
    costs: dict[Name, Fraction]


class Ledger:
    """An append-only list of releases with exact rational costs. It refuses a release that would break the claim.

    The claim is the total epsilon that one reward may lose. Pure costs add up. With a ``delta`` their sum may exceed
    the claim, as long as their composition at that delta (Kairouz, Oh & Viswanath 2015) does not.

    >>> ledger = Ledger("1")
    >>> ledger.enter("first mean", dict.fromkeys(["r1", "r2"], "1/2"))
    >>> ledger.enter("second mean", {"r2": "1/2", "r3": 1})
    >>> ledger.spent("r2"), ledger.left("r1"), ledger.worst()
    (Fraction(1, 1), Fraction(1, 2), Fraction(1, 1))
    >>> ledger.enter("first mean", {"r1": "1/2"})
    Traceback (most recent call last):
    dpbandits.privacy.ledger.LedgerError: release first mean must be drawn once, got a second draw
    """

    def __init__(self, claim: Exactly, delta: float = 0.0) -> None:
        self.claim, self.delta = rational("claim", claim), fraction("delta", delta, zero=True)
        self._entries: list[Entry] = []
        self._names: set[Name] = set()
        self._costs: dict[Name, list[Fraction]] = {}

    def enter(self, release: Name, costs: Mapping[Any, Exactly]) -> None:
        """Charge a release before it is drawn. A LedgerError leaves the ledger unchanged."""
        exact = {reward: rational("cost", cost) for reward, cost in costs.items()}
        if release in self._names:
            raise LedgerError(f"release {release} must be drawn once, got a second draw")
        for reward, cost in exact.items():
            self._check(release, reward, cost)
        self._names.add(release)
        self._entries.append(Entry(release, exact))
        for reward, cost in exact.items():
            self._costs.setdefault(reward, []).append(cost)

    def _check(self, release: Name, reward: Name, cost: Fraction) -> None:
        costs = [*self._costs.get(reward, ()), cost]
        total = sum(costs, Fraction(0))
        if total <= self.claim:
            return
        if self.delta and heterogeneous([float(one) for one in costs], self.delta) <= self.claim:
            return
        raise LedgerError(f"reward {reward} must lose at most {self.claim}, got {total} with release {release}")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases, in order."""
        return tuple(self._entries)

    def spent(self, reward: Name) -> Fraction:
        """The epsilon that a reward has lost: the sum of its costs."""
        return sum(self._costs.get(reward, ()), Fraction(0))

    def left(self, reward: Name) -> Fraction:
        """The epsilon that a reward may still lose, if pure costs add up."""
        return max(self.claim - self.spent(reward), Fraction(0))

    def worst(self) -> Fraction:
        """The largest epsilon that any reward has lost."""
        return max((self.spent(reward) for reward in self._costs), default=Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready: rationals as text, names as they are."""
        entries = [
            {"release": release, "costs": [[reward, str(cost)] for reward, cost in costs.items()]}
            for release, costs in self._entries
        ]
        return {"claim": str(self.claim), "delta": self.delta, "entries": entries}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Ledger:
        """The ledger that ``to_json`` wrote. Every entry is checked again.

        >>> Ledger.from_json({"claim": "1/3", "delta": 0.0, "entries": []}).claim
        Fraction(1, 3)
        """
        ledger = cls(record["claim"], record["delta"])
        entries: Iterable[Mapping[str, Any]] = record["entries"]
        for entry in entries:
            ledger.enter(entry["release"], dict(entry["costs"]))
        return ledger
