"""A ledger of privacy costs: every release lists the rewards that it uses and what it costs each of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

from dpbandits.checks import fraction
from dpbandits.errors import InputError
from dpbandits.exact.rational import Exactly, writable
from dpbandits.privacy.renyi import pure_to_zcdp, zcdp_to_dp

__all__ = ["Entry", "EntryName", "Ledger", "LedgerError"]

#: The name of a release or of a reward: a short text, a whole number, or a tuple of names. It is public: the ledger is
#: shown, and errors quote it. So it says which reward or release is meant, and never what was in it.
EntryName = str | int | tuple["EntryName", ...]

MAX_TEXT = 100  # characters of a name's text; a dump of memory would have more

ROUNDED, SMALLEST = 1.0 + 1e-12, 1e-300  # a sum of floats is rounded up, and never to nothing


class LedgerError(RuntimeError):
    """A release was refused, before it was entered: it would be drawn twice, or exceed the claim."""


class Entry(NamedTuple):
    """One release: its name, and what it costs each reward that it uses."""

    release: EntryName
    costs: Mapping[EntryName, Fraction]


class Ledger:
    """An append-only list of releases with exact rational costs. It refuses a release that would break the claim.

    The claim is the total epsilon that one reward may lose. Pure costs add up. With a ``delta`` their sum may exceed
    the claim, as long as their zCDP at that delta does not. Both rules hold if earlier releases decide the later costs
    (Feldman & Zrnic 2021, Theorem 3.1). Optimal composition does not, so it is not used here. A ledger may be shared
    between threads. It lives in memory; keep what ``to_json`` returns.

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
        self._claim, self._delta = writable("claim", claim), fraction("delta", delta, zero=True)
        self._lock = threading.Lock()  # a check and its entry are one step
        self._entries: list[Entry] = []
        self._names: set[EntryName] = set()
        self._costs: dict[EntryName, list[Fraction]] = {}

    @property
    def claim(self) -> Fraction:
        """The total epsilon that one reward may lose. It is fixed when the ledger is opened."""
        return self._claim

    @property
    def delta(self) -> float:
        """The delta of the claim; 0 if it is pure."""
        return self._delta

    def enter(self, release: EntryName, costs: Mapping[Any, Exactly]) -> None:
        """Charge a release before it is drawn. A refusal leaves the ledger unchanged."""
        name = _checked("release", release)
        each = [(_checked("reward", reward), writable("cost", cost)) for reward, cost in costs.items()]
        exact = dict(each)
        if len(exact) < len(each):
            raise InputError("costs", "must name each reward once in a release; one is named twice")
        with self._lock:
            if name in self._names:
                raise LedgerError(f"release {name} must be drawn once, got a second draw")
            for reward, cost in exact.items():
                self._check(name, reward, cost)
            self._names.add(name)
            self._entries.append(Entry(name, MappingProxyType(exact)))
            for reward, cost in exact.items():
                self._costs.setdefault(reward, []).append(cost)

    def _check(self, release: EntryName, reward: EntryName, cost: Fraction) -> None:
        costs = [*self._costs.get(reward, ()), cost]
        total = sum(costs, Fraction(0))
        if total <= self.claim or (self.delta and _at_delta(costs, self.delta) <= self.claim):
            return
        raise LedgerError(f"reward {reward} must lose at most {self.claim}, got {total} with release {release}")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All releases, in order."""
        with self._lock:
            return tuple(self._entries)

    def spent(self, reward: EntryName) -> Fraction:
        """The epsilon that a reward has lost: the sum of its costs."""
        with self._lock:
            return sum(self._costs.get(reward, ()), Fraction(0))

    def left(self, reward: EntryName) -> Fraction:
        """The epsilon that a reward may still lose, if pure costs add up."""
        return max(self.claim - self.spent(reward), Fraction(0))

    def worst(self) -> Fraction:
        """The largest epsilon that any reward has lost."""
        with self._lock:
            return max((sum(costs, Fraction(0)) for costs in self._costs.values()), default=Fraction(0))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready: rationals as text, names as they are, tuples as lists."""
        entries = [
            {"release": release, "costs": [[reward, str(cost)] for reward, cost in costs.items()]}
            for release, costs in self.entries
        ]
        return {"claim": str(self.claim), "delta": self.delta, "entries": entries}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Ledger:
        """The ledger that ``to_json`` wrote. Every entry is checked again.

        >>> ledger = Ledger("1/3")
        >>> ledger.enter(("arm", 0, (1, 2)), {("user", 7): 1e-12})
        >>> Ledger.from_json(ledger.to_json()).entries == ledger.entries
        True
        """
        try:
            ledger = cls(record["claim"], record["delta"])
            entries: Iterable[Mapping[str, Any]] = record["entries"]
            for entry in entries:
                costs = [(_hashable(reward), cost) for reward, cost in entry["costs"]]
                if len(dict(costs)) < len(costs):
                    raise InputError("entries", "must name each reward once in a release; one is named twice")
                ledger.enter(_hashable(entry["release"]), dict(costs))
        except (KeyError, TypeError) as error:
            raise InputError("record", "must be what to_json wrote; this is not") from error
        return ledger


def _at_delta(costs: Iterable[Fraction], delta: float) -> float:
    """The epsilon at ``delta`` of these pure costs, each of which may depend on all releases before it.

    Every one is rho-zCDP, and a bound on the sum of the rho bounds the Rényi divergence of every order. A play may also
    end within the sum of pure costs: it then loses no more than that, and the bound on the others' moments stands.
    """
    rho = math.fsum(pure_to_zcdp(float(cost)) for cost in costs)
    return zcdp_to_dp(max(rho * ROUNDED, SMALLEST), delta)


def _hashable(name: Any) -> Any:
    """A name as it was before JSON, which has lists and no tuples."""
    return tuple(map(_hashable, name)) if isinstance(name, list) else name


def _checked(what: str, name: Any) -> EntryName:
    """``name`` if it is a valid name. An invalid one is not shown: it may be the memory of a curator."""
    if isinstance(name, tuple):
        return tuple(_checked(what, part) for part in name)
    if isinstance(name, Integral) and not isinstance(name, bool) and abs(int(name)) < 1 << 63:
        return int(name)
    if isinstance(name, str) and len(text := str.__str__(name)) <= MAX_TEXT and text.isprintable():
        return (
            text  # a text of Python's own: another kind may say that it equals nothing, and be charged anew each time
        )
    raise InputError(
        what, f"must be named by a text of up to {MAX_TEXT} characters, a whole number, or a tuple; this is not"
    )
