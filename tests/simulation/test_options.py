"""The options of a simulation cannot change after it was made, and are what JSON has."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpbandits.errors import InputError
from dpbandits.simulation.options import Options
from dpbandits.simulation.settings import Simulation


def made(**options: Any) -> Simulation:
    return Simulation.of("adap-ucb", arms="0.9,0.6", horizon=100, epsilon=1.0, options=options)


def test_options_cannot_be_changed() -> None:
    given = {"alpha": 2.0}
    simulation: Any = Simulation.of("adap-ucb", arms="0.9,0.6", horizon=100, epsilon=1.0, options=given)
    given["alpha"] = 3.0
    with pytest.raises(TypeError):
        simulation.options["alpha"] = 3.0
    assert simulation.to_json()["options"] == {"alpha": 2.0}
    assert simulation.policy.settings["alpha"] == 2.0


@pytest.mark.parametrize("value", [np.array(2.0), np.float64(2.0), np.int64(2), Fraction(2)])
def test_a_number_of_any_kind_becomes_one_that_json_has(value: Any) -> None:
    simulation = made(alpha=value)
    assert type(simulation.options["alpha"]) in (int, float)
    assert Simulation.from_json(json.loads(json.dumps(simulation.to_json()))) == simulation == made(alpha=2)


@pytest.mark.parametrize("value", [object(), {1, 2}, 2j, b"2", len, [object()]])
def test_what_json_does_not_have_is_refused_by_the_name_of_the_option(value: Any) -> None:
    with pytest.raises(InputError, match=r"^alpha must be a number, a text, true, false, or a list of these, got "):
        made(alpha=value)


def test_options_are_equal_hashed_and_pickled_as_values() -> None:
    one, two = made(alpha=2.0), made(alpha=2)
    assert one == two != made(alpha=3.0)
    assert hash(one.options) == hash(two.options)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.options == {"alpha": 2.0}
    nested = Options({"marks": [1, [2, 3]], "of": {"a": np.array([1.0])}})
    assert Options(json.loads(json.dumps(nested.to_json()))) == nested == pickle.loads(pickle.dumps(nested))
    assert {nested: 1}[Options({"of": {"a": (1.0,)}, "marks": (1, (2, 3))})] == 1
