"""The ledger adds up exactly, and refuses without a trace."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbandits.errors import InputError
from dpbandits.privacy.ledger import Ledger, LedgerError


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


def test_it_survives_json_and_is_checked_again() -> None:
    ledger = Ledger("1/3")
    ledger.enter("a", {"x": "1/7", "y": "1/3"})
    record = json.loads(json.dumps(ledger.to_json()))
    assert Ledger.from_json(record).entries == ledger.entries
    record["claim"] = "1/4"
    with pytest.raises(LedgerError, match="reward y"):
        Ledger.from_json(record)


def test_bad_costs_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="claim must be positive"):
        Ledger(0)
    with pytest.raises(InputError, match="cost must be positive"):
        Ledger(1).enter("a", {"x": -1})
