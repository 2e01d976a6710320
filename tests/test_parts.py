"""The memory of parts: walked, copied, frozen and thawed, and what does not fit is refused."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandits.agents import UCB, Doubling, LikelihoodIMED
from dpbandits.agents.skip_ahead import SkippingUCB
from dpbandits.curators import Batch, BinnedBernoulli, Hybrid
from dpbandits.errors import InputError
from dpbandits.parts import arrays, copied, every_field, freeze, in_plain_python, nested, rebuilt, thaw
from dpbandits.policies import lookup
from dpbandits.types import Bools, Floats, Integers


class Inner(NamedTuple):
    scale: float
    counts: Integers  # (2,)


class Outer(NamedTuple):
    inner: Inner
    table: Floats  # (2, 3)
    flags: Bools  # (2,)


def outer() -> Outer:
    return Outer(Inner(0.5, np.array([1, 2])), np.arange(6.0).reshape(2, 3), np.array([True, False]))


FROZEN: dict[str, Any] = {
    "inner": {"counts": [1, 2]},
    "table": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
    "flags": [True, False],
}


def test_arrays_are_found_inside_parts_and_nothing_else_is() -> None:
    assert [name for name, _ in arrays(outer())] == ["counts", "table", "flags"]
    skipping = SkippingUCB.start(UCB.start(2))
    assert "ucb" not in [name for name, _ in arrays(skipping)]
    assert [name for name, _ in arrays(Doubling.start(2, skipping))][-1] == "pulls"


def test_every_field_is_found_with_the_part_that_has_it() -> None:
    part = outer()
    found = [(type(owner).__name__, name) for owner, name, _ in every_field(part)]
    own = [("Outer", "inner"), ("Inner", "scale"), ("Inner", "counts"), ("Outer", "table"), ("Outer", "flags")]
    assert found == own
    assert [type(one) for one in nested(part)] == [Outer, Inner]


def test_a_copy_has_memory_of_its_own_and_the_same_parameters() -> None:
    one = outer()
    two = copied(one)
    two.inner.counts[0], two.table[1, 2] = 7, 9.0
    assert (one.inner.counts.tolist(), float(one.table[1, 2])) == ([1, 2], 5.0)
    assert (type(two), type(two.inner), two.inner.scale) == (Outer, Inner, 0.5)
    assert type(copied(Batch.start(2, epsilon=1.0))) is Batch


def test_rebuilding_places_every_array_once() -> None:
    seen: list[int] = []
    rebuilt(outer(), lambda array: seen.append(array.size) or array)  # type: ignore[func-returns-value]
    assert seen == [2, 6, 2]


def test_plain_python_reads_and_writes_the_same_memory() -> None:
    one = outer()
    plain: Any = in_plain_python(one)
    plain.inner.counts[1] = 5
    plain.table[0, 2] = 2.5
    assert (one.inner.counts.tolist(), float(one.table[0, 2])) == ([1, 5], 2.5)
    assert type(plain.inner.counts[1]) is int
    assert type(plain.table[0, 2]) is float
    assert len(plain.inner.counts) == 2


@pytest.mark.parametrize("name", lookup.names())
def test_the_memory_of_every_policy_survives_json(name: str) -> None:
    policy, rng = lookup.sample(name, arms=3), np.random.default_rng(0)
    for t in range(1, 30):
        arm, _, _ = policy.agent.act(policy.curator, t, rng)
        policy.curator.add(arm, policy.curator.respond(0.5, 1.0, rng), 1.0, rng)
        policy.curator.close(arm, rng)
    fresh = policy.fresh()
    for part, other in ((policy.agent, fresh.agent), (policy.curator, fresh.curator)):
        frozen = json.loads(json.dumps(freeze(part), allow_nan=False))
        thaw(other, frozen)
        assert freeze(other) == freeze(part)


def test_what_is_frozen_is_the_memory_alone() -> None:
    assert freeze(outer()) == FROZEN
    other = Outer(Inner(0.25, np.zeros(2, np.int64)), np.zeros((2, 3)), np.zeros(2, bool))
    thaw(other, FROZEN)
    assert freeze(other) == FROZEN
    assert other.inner.scale == 0.25, "parameters follow from settings"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"table": [0.0] * 6}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"table": [[0.0, 1.0], [2.0, 3.0]]}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"table": [[0.0], [1.0, 2.0]]}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"table": 3.0}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"table": None}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"table": [["a", "b", "c"]] * 2}, r"text does not fit: Outer\.table needs float64 \(2, 3\)"),
        ({"inner": {"counts": [1.0, 2.0]}}, r"text does not fit: Inner\.counts needs int64 \(2,\)"),
        ({"inner": {"counts": [1.5, 2.0]}}, r"text does not fit: Inner\.counts needs int64 \(2,\)"),
        ({"inner": {"counts": [1, 2, 3]}}, r"text does not fit: Inner\.counts needs int64 \(2,\)"),
        ({"inner": {"counts": [2**70, 1]}}, r"text does not fit: Inner\.counts needs int64 \(2,\)"),
        ({"inner": {"counts": ["1", "2"]}}, r"text does not fit: Inner\.counts needs int64 \(2,\)"),
        ({"flags": [1, 0]}, r"text does not fit: Outer\.flags needs bool \(2,\)"),
        ({"inner": {}}, "text was saved by another policy or version: Inner has other memory"),
        ({"inner": [1, 2]}, "text was saved by another policy or version: Inner has other memory"),
        ({"more": [1]}, "text was saved by another policy or version: Outer has other memory"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        thaw(outer(), {**FROZEN, **changed})
    assert caught.value.parameter == "text"


def test_what_an_earlier_version_kept_besides_is_left_out() -> None:
    agent = LikelihoodIMED.start(2)
    agent.means[:] = 0.25, 0.5
    earlier, again = {**freeze(agent), "least": [0.0, 1.0]}, LikelihoodIMED.start(2)
    thaw(again, earlier)
    assert freeze(again) == freeze(agent)
    for wrong in ({**earlier, "more": [1]}, {name: value for name, value in earlier.items() if name != "means"}):
        with pytest.raises(InputError, match="text was saved by another policy or version: LikelihoodIMED"):
            thaw(again, wrong)


@pytest.mark.parametrize("frozen", [None, [], "text", 3, {}])
def test_what_is_no_memory_is_refused(frozen: Any) -> None:
    with pytest.raises(InputError, match="text was saved by another policy or version: Outer has other memory"):
        thaw(outer(), frozen)


def test_whole_numbers_are_floats_where_floats_are_kept() -> None:
    """JSON does not tell 1.0 from 1 in every language."""
    one = outer()
    thaw(one, {**FROZEN, "table": [[0, 1, 2], [3, 4, 5]]})
    assert freeze(one) == FROZEN


def test_another_curator_is_refused() -> None:
    with pytest.raises(InputError, match="text was saved by another policy or version: Hybrid"):
        thaw(Hybrid.start(2, epsilon_log=1.0, epsilon_tree=1.0), freeze(Batch.start(2, epsilon=1.0)))
    with pytest.raises(InputError, match=r"text does not fit: Batch\.raw_counts needs int64 \(3,\)"):
        thaw(Batch.start(3, epsilon=1.0), freeze(Batch.start(2, epsilon=1.0)))


@pytest.mark.parametrize("bits", [10, 3000])
def test_memory_without_what_earlier_versions_did_not_keep_goes_on(bits: int) -> None:
    """The expansion of a likelihood follows from the bits, and is computed again."""
    kept, again, rng = BinnedBernoulli.start(1), BinnedBernoulli.start(1), np.random.default_rng(0)
    for number in range(bits):
        kept.add(0, float(rng.random() < 0.3), 0.25 * (1 + number % 24), rng)
    frozen = freeze(kept)
    del frozen["near"]
    thaw(again, frozen)
    assert again.mean(0) == pytest.approx(kept.mean(0), abs=1e-11)
    for one in (kept, again):
        one.add(0, 1.0, 2.0, rng)
    assert again.mean(0) == pytest.approx(kept.mean(0), abs=1e-11)
    del frozen["counts"]
    with pytest.raises(InputError, match="text was saved by another policy or version: BinnedBernoulli"):
        thaw(again, frozen)


class Keeper(NamedTuple):
    """Its field has the name under which a class says what its earlier versions kept."""

    forgotten: int
    counts: Integers


def test_a_field_may_be_called_forgotten() -> None:
    kept, again = Keeper(3, np.array([4, 5])), Keeper(3, np.zeros(2, np.int64))
    thaw(again, freeze(kept))
    assert again.counts.tolist() == [4, 5]
