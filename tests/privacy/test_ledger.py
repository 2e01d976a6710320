"""The ledger adds up exactly, and refuses without a trace."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbandits import policies
from dpbandits.audit.releases import enter_all, played
from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.privacy.ledger import EntryName, Ledger, LedgerError


@given(st.lists(st.tuples(st.integers(0, 3), st.fractions("1/100", 1)), max_size=30))
def test_no_reward_is_ever_beyond_the_claim(charges: list[tuple[int, Fraction]]) -> None:
    ledger, spent = Ledger(1), dict.fromkeys(range(4), Fraction(0))
    for number, (reward, cost) in enumerate(charges):
        if spent[reward] + cost <= 1:
            ledger.enter(number, {reward: cost})
            spent[reward] += cost
        else:
            with pytest.raises(LedgerError, match=f"reward {reward} must lose at most 1"):
                ledger.enter(number, {reward: cost})
    assert {reward: ledger.spent(reward) for reward in range(4)} == spent
    assert ledger.worst() == max(spent.values())


def test_ten_tenths_are_one_and_an_eleventh_is_refused() -> None:
    ledger = Ledger("1")
    for number in range(10):
        ledger.enter(number, {"r": 0.1})
    assert ledger.left("r") == 0
    with pytest.raises(LedgerError):
        ledger.enter(10, {"r": "1/1000000"})
    assert len(ledger.entries) == 10


def test_a_refused_release_leaves_no_trace_on_any_reward() -> None:
    ledger = Ledger(1)
    ledger.enter("a", {"x": "2/3"})
    with pytest.raises(LedgerError):
        ledger.enter("b", {"y": "1/2", "x": "1/2"})
    assert ledger.spent("y") == 0
    ledger.enter("b", {"y": "1/2"})  # the name is still free
    with pytest.raises(LedgerError, match="drawn once"):
        ledger.enter("a", {"z": "1/2"})


def test_with_a_delta_composition_may_go_beyond_the_sum() -> None:
    costs = [Fraction(1, 20)] * 100  # the sum is 5; at delta 1e-5 they compose to about 2
    ledger = Ledger(Fraction(5, 2), delta=1e-5)
    for number, cost in enumerate(costs):
        ledger.enter(number, {"r": cost})
    assert ledger.spent("r") == 5
    pure = Ledger(Fraction(5, 2))
    for number, cost in enumerate(costs[:50]):
        pure.enter(number, {"r": cost})
    with pytest.raises(LedgerError):
        pure.enter(50, {"r": costs[50]})


@pytest.mark.parametrize(("sizes", "claim", "delta"), [((0.1, 0.5), "1", 0.01), ((0.25, 1.25), "2", 0.05)])
def test_an_adversary_who_chooses_costs_by_what_was_released_stays_within_delta(
    sizes: tuple[float, float], claim: str, delta: float
) -> None:
    """All strategies on randomised responses of two sizes, by dynamic programming. Optimal composition would let 1.3
    times the delta through.
    """
    epsilon = float(Fraction(claim))

    @cache
    def fits(counts: tuple[int, int]) -> bool:
        ledger = Ledger(claim, delta)
        costs = [size for size, count in zip(sizes, counts, strict=True) for _ in range(count)]
        try:
            for number, cost in enumerate(sorted(costs)):
                ledger.enter(number, {"r": cost})
        except LedgerError:
            return False
        return True

    @cache
    def worst(counts: tuple[int, int], ups: tuple[int, int]) -> float:
        """The largest delta from here on, after this many responses of each size, this many of them for the reward."""
        loss = sum(size * (2 * up - count) for size, count, up in zip(sizes, counts, ups, strict=True))
        found = max(0.0, -math.expm1(epsilon - loss)) if loss > epsilon else 0.0
        for kind, size in enumerate(sizes):
            more = (counts[0] + (kind == 0), counts[1] + (kind == 1))
            if fits(more):
                up, chance = (ups[0] + (kind == 0), ups[1] + (kind == 1)), 1.0 / (1.0 + math.exp(-size))
                found = max(found, chance * worst(more, up) + (1.0 - chance) * worst(more, ups))
        return found

    assert 0.1 * delta < worst((0, 0), (0, 0)) <= delta


def test_it_survives_json_and_is_checked_again() -> None:
    ledger = Ledger("1/3")
    ledger.enter("a", {"x": "1/7", "y": "1/3"})
    record = json.loads(json.dumps(ledger.to_json()))
    assert Ledger.from_json(record).entries == ledger.entries
    record["claim"] = "1/4"
    with pytest.raises(LedgerError, match="reward y"):
        Ledger.from_json(record)


class Slow(Ledger):
    """A ledger that lets other threads run between a check and its entry."""

    def _check(self, release: EntryName, reward: EntryName, cost: Fraction) -> None:
        super()._check(release, reward, cost)
        time.sleep(1e-3)


def enter_at_once(ledger: Ledger, entries: list[tuple[EntryName, dict[EntryName, str]]]) -> list[int]:
    """The numbers of the entries that the ledger took, each from a thread of its own."""
    start, entered = threading.Barrier(len(entries)), list[int]()

    def enter(number: int) -> None:
        start.wait()
        with suppress(LedgerError):
            ledger.enter(*entries[number])
            entered.append(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(len(entries))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return entered


def test_400_threads_do_not_overspend() -> None:
    ledger = Slow(1)
    entered = enter_at_once(ledger, [(number, {"r": "1/100", number: "1/2"}) for number in range(400)])
    assert ledger.spent("r") == 1
    assert len(entered) == len(ledger.entries) == 100
    assert [number for number in range(400) if ledger.spent(number)] == sorted(entered)


def test_threads_do_not_draw_one_release_twice() -> None:
    ledger = Slow(1)
    assert len(enter_at_once(ledger, [("the mean", {number: "1/2"}) for number in range(50)])) == 1
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("name", ["dp-ucb", "adap-ucb", "private-ucb", "dp-ucb-bound"])
def test_what_a_policy_enters_survives_json_and_shows_no_memory(name: str) -> None:
    policy = lookup.make(name, arms=2, epsilon=1.0, horizon=40)
    ledger = Ledger(2)
    enter_all(policy, played(policy, [0.0, 1.0] * 20, 0), ledger)
    text = json.dumps(ledger.to_json())
    again = Ledger.from_json(json.loads(text))
    assert again.entries == ledger.entries
    assert again.worst() == ledger.worst()
    assert again.to_json() == ledger.to_json()
    assert not re.search(r"[0-9a-f]{12}", text), "memory in hexadecimal"
    with pytest.raises(LedgerError, match="drawn once") as caught:
        enter_all(policy, played(policy, [0.0, 1.0] * 20, 0), ledger)
    assert not re.search(r"[0-9a-f]{12}", str(caught.value))


@pytest.mark.parametrize("epsilon", [4e-10, 1e-12, 1e-12 / 3, 1e-100])
def test_costs_may_be_tiny(epsilon: float) -> None:
    policy = policies.adap_ucb(2, epsilon=epsilon)
    ledger = Ledger(epsilon * (1 + 1e-9))
    enter_all(policy, played(policy, [0.0, 1.0] * 10, 0), ledger)
    assert float(ledger.worst()) == pytest.approx(epsilon, rel=1e-12)
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))).entries == ledger.entries
    rare = Ledger(1, delta=1e-6)
    for number in range(3):
        rare.enter(number, {"r": epsilon, "s": "1/3"})


NAMES = (0.8414, b"0.8414", None, True, ["r"], {"r"}, "0.8414" * 50, "0.8414\n", ("r", 0.8414), 10**30, Fraction(1, 3))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name!r:.12}")
def test_what_is_no_name_is_refused_and_not_shown(name: Any) -> None:
    ledger = Ledger(1)
    with pytest.raises(InputError, match="release must be named by a text") as caught:
        ledger.enter(name, {"r": "1/2"})
    assert "8414" not in str(caught.value)
    if not isinstance(name, list | set):
        with pytest.raises(InputError, match="reward must be named by a text") as caught:
            ledger.enter("a", {name: "1/2"})
        assert "8414" not in str(caught.value)
    assert ledger.entries == ()


def test_what_was_entered_cannot_be_changed() -> None:
    ledger, costs = Ledger(1), {"r": Fraction(1, 2)}
    ledger.enter("a", costs)
    costs["r"] = Fraction(1, 1000)
    for change in (
        lambda: setattr(ledger, "claim", Fraction(100)),
        lambda: setattr(ledger, "delta", 0.5),
        lambda: ledger.entries[0].costs.clear(),  # type: ignore[attr-defined]
        lambda: ledger.entries[0].costs.update(r=0),  # type: ignore[attr-defined]
    ):
        with pytest.raises(AttributeError):
            change()
    assert ledger.spent("r") == Fraction(1, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"claim": "-1"},
        {"claim": "nan"},
        {"claim": None},
        {"delta": "x"},
        {"delta": 1.5},
        {"entries": None},
        {"entries": [1]},
        {"entries": [{}]},
        {"entries": [{"release": "a", "costs": 3}]},
        {"entries": [{"release": "a", "costs": [["x", "-1/2"]]}]},
        {"entries": [{"release": "a", "costs": [["x", "0"]]}]},
        {"entries": [{"release": "a", "costs": [["x", "nan"]]}]},
        {"entries": [{"release": "a", "costs": [["x", "1/2"], ["x", "1/1000"]]}]},
        {"entries": [{"release": {"a": 1}, "costs": []}]},
    ],
)
def test_a_record_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Ledger.from_json({"claim": "1", "delta": 0.0, "entries": [], **change})


def test_bad_costs_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="claim must be positive"):
        Ledger(0)
    with pytest.raises(InputError, match="cost must be positive"):
        Ledger(1).enter("a", {"x": -1})


class Unlike(str):
    """A text that says that it equals nothing but itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def test_a_name_that_equals_nothing_is_charged_like_any_other() -> None:
    ledger = Ledger("1")
    ledger.enter(Unlike("first"), {Unlike("r"): "1"})
    with pytest.raises(LedgerError, match="must lose at most 1"):
        ledger.enter("second", {Unlike("r"): "1"})
    with pytest.raises(LedgerError, match="must be drawn once"):
        ledger.enter(Unlike("first"), {})
    with pytest.raises(InputError, match="costs must name each reward once"):
        ledger.enter("third", {Unlike("s"): "1/2", Unlike("s"): "1/2"})
    assert ledger.worst() == 1
