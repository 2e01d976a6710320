"""Rules for values, and the error that each of them raises: one line with the parameter, the rule, and the value."""

from __future__ import annotations

import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpbandits.audit.instruments import NotVerifiableError
from dpbandits.checks import MAX_EXACT_INT, at_least, flag, fraction, known, nearest, positive
from dpbandits.client import BudgetError
from dpbandits.errors import ChoiceError, InputError, MissingExtraError

NOT_NUMBERS: tuple[Any, ...] = (None, "1", "abc", [1], (1,), {}, True, False, np.bool_(True), 1j, object)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), Fraction(1, 3), 5e-324, 1e308])
def test_positive_numbers_of_every_kind_are_floats(value: Any) -> None:
    assert positive("epsilon", value) == float(value)
    assert type(positive("epsilon", value)) is float


@pytest.mark.parametrize("value", [0, -1, -0.0, math.nan, math.inf, -math.inf, np.float64("nan"), *NOT_NUMBERS])
def test_what_is_not_positive_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^epsilon must be (a number, )?positive and finite, got ") as caught:
        positive("epsilon", value)
    assert caught.value.parameter == "epsilon"
    assert str(value) in str(caught.value)


def test_a_text_is_not_shown_as_if_it_were_the_number() -> None:
    with pytest.raises(InputError, match=r"^epsilon must be a number, positive and finite, got '1'$"):
        positive("epsilon", "1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^count must be a whole number of at least 1, got '3'$"):
        at_least("count", "3", 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^epsilon must be a number, positive and finite, got Decimal\('0.1'\)$"):
        positive("epsilon", Decimal("0.1"))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float64(3), Fraction(3), MAX_EXACT_INT])
def test_whole_numbers_of_every_kind_are_integers(value: Any) -> None:
    assert at_least("runs", value, 3) == int(value)
    assert type(at_least("runs", value, 3)) is int


@pytest.mark.parametrize("value", [2, 3.5, -3, math.nan, math.inf, *NOT_NUMBERS])
def test_what_is_not_whole_or_too_small_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^runs must be a whole number of at least 3, got "):
        at_least("runs", value, 3)


def test_integers_that_floats_cannot_count_are_refused() -> None:
    for value in (MAX_EXACT_INT + 1, 1e30, 10**400):
        with pytest.raises(InputError, match=r"^horizon must be at most 2\^53, got "):
            at_least("horizon", value, 1)
    with pytest.raises(InputError, match=r"^epsilon must be positive and finite, got 1000"):
        positive("epsilon", 10**400)


def test_shares_exclude_one_and_zero_unless_it_is_allowed() -> None:
    assert fraction("delta", 0.5) == 0.5
    assert fraction("delta", 0, zero=True) == 0.0
    for value, zero, rule in ((0, False, r"\(0, 1\)"), (1, True, r"\[0, 1\)"), (-0.1, True, r"\[0, 1\)")):
        with pytest.raises(InputError, match=rf"^delta must be in {rule}, got {value}"):
            fraction("delta", value, zero=zero)
    for wrong in (math.nan, *NOT_NUMBERS):
        with pytest.raises(InputError, match=r"^delta must be in"):
            fraction("delta", wrong, zero=True)


def test_only_truth_values_are_flags() -> None:
    assert flag("as_printed", True) is True
    for value in (1, 0, "true", None, np.bool_(True)):
        with pytest.raises(InputError, match=r"^as_printed must be True or False, got "):
            flag("as_printed", value)  # type: ignore[arg-type]


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all() -> None:
    assert known("policy", "ucb1", ("adap-ucb", "ucb1")) == "ucb1"
    for name, hint in (("adap-ubc", "did you mean adap-ucb?"), ("zzz", "known are adap-ucb, ucb1")):
        with pytest.raises(InputError) as caught:
            known("policy", name, iter(("adap-ucb", "ucb1")))
        assert str(caught.value) == f"policy '{name}' is unknown: {hint}"
    assert nearest(7, ["alpha"]) == "known are alpha"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("must be 3, got 4", "arms must be 3, got 4"),
        (": no file", "arms: no file"),
        (", line 3: wrong", "arms, line 3: wrong"),
    ],
)
def test_an_error_begins_with_its_parameter(text: str, said: str) -> None:
    error = InputError("arms", text)
    assert (str(error), error.parameter, error.text) == (said, "arms", text)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("kind", [InputError, BudgetError, NotVerifiableError])
def test_errors_travel_between_processes(kind: type[InputError]) -> None:
    again = pickle.loads(pickle.dumps(kind("epsilon", "must be positive, got -1")))
    assert type(again) is kind
    assert (again.parameter, str(again)) == ("epsilon", "epsilon must be positive, got -1")


def test_other_errors_say_what_to_do() -> None:
    assert re.fullmatch(r"pyarrow is not installed: pip install .*\[data\]'", str(MissingExtraError("pyarrow", "data")))
    assert issubclass(ChoiceError, ValueError)
    assert not issubclass(ChoiceError, InputError)
