"""What a third red team found: none of its policies is proved, and what the verifier rests on holds where they run."""

from __future__ import annotations

import math
import operator
import os
from fractions import Fraction
from typing import Any

import broken_third
import numpy as np
import pytest
import right_unusual
from broken_central import Pair
from test_subtle import attempt, is_proved

from dpbandits import Session
from dpbandits.audit import beyond, verify, verify_curator, watch
from dpbandits.audit.counts import Count, Float, Truth, bare
from dpbandits.audit.proof import prove
from dpbandits.audit.refusals import Refused
from dpbandits.audit.releases import accounted_by_zcdp
from dpbandits.exact import BernoulliCurator, RandomisedResponse, SigmoidCurator
from dpbandits.exact.sampling import Flip
from dpbandits.live import Live
from dpbandits.numerics import unit
from dpbandits.parts import in_plain_python


@pytest.mark.parametrize("name", broken_third.WHY)
def test_there_is_no_proof(name: str) -> None:
    why, policy = broken_third.WHY[name], broken_third.MADE[name](broken_third.ARMS[name], epsilon=1.0)
    if not why:
        assert attempt(policy).epsilon > 1.0 + 1e-9
        return
    with pytest.raises((Refused, TypeError), match=why):
        attempt(policy)


@pytest.mark.parametrize("name", ["SignOfZero", "LargeEqual", "LastBit", "LateAnswer", "NormalTwice"])
def test_the_verdict_is_not_proved(name: str) -> None:
    verdict = verify(broken_third.MADE[name], epsilon=1.0, horizon=12)
    assert verdict.verdict in ("violated", "not refuted", "refused"), f"{verdict}"
    assert verdict.reason or verdict.violated


@pytest.mark.parametrize("name", right_unusual.MADE)
def test_right_ones_are_proved(name: str) -> None:
    is_proved(right_unusual.MADE[name](2, epsilon=1.0))


def test_the_faults_are_real() -> None:
    """What the subjects rest on, in plain Python and NumPy."""
    assert math.copysign(1.0, 0.0 * (0.25 - 0.5)) == -1.0
    large: Any = np.int64(9007199254740993)
    assert (large / 3, int(large) / 3) == (3002399751580330.5, 3002399751580331.0)
    assert large == 9007199254740992.0
    assert int(large) != 9007199254740992.0
    with np.errstate(all="ignore"):
        assert math.isnan(abs(np.float64(-8) ** (1 / 3)))
    assert abs((-8.0) ** (1 / 3)) == pytest.approx(2.0)
    assert (round(2.675, 2), round(np.float64(2.675), 2)) == (2.67, 2.68)
    memory: Any = in_plain_python(Pair.start(2, epsilon=1.0)).means  # as in a session
    memory[False] = 7.0
    assert memory.tolist() == [7.0, 0.0]
    next_to_half = math.nextafter(0.5, 1.0)
    assert (next_to_half + 1.0) - 1.0 == 0.5
    total = 0.0
    for _ in range(broken_third.PARTS):
        total += broken_third.PART
    assert total - unit(total) > 0.0
    rho = 0.5 * 0.2643399687457304**2  # two functions move together: twice the deviations, four times the loss
    assert accounted_by_zcdp([[math.sqrt(2.0 * rho)]], 1e-6) > 1.0


OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne")
NUMBERS = (0, 1, 3, -2, 7, 2**53 - 1, 2**53 + 1, 0.0, -0.0, 0.5, -2.5, 1e-300, 1e300, math.inf, -math.inf, math.nan)


def of_both_kinds(name: str, one: Any, two: Any) -> tuple[Any, Any]:
    """The result of an operator on numbers of Python, and on numbers of NumPy; None where it fails."""

    def kind(number: Any) -> Any:
        return np.int64(number) if isinstance(number, int) else np.float64(number)

    results: list[Any] = []
    for a, b in ((one, two), (kind(one), kind(two))):
        try:
            with np.errstate(all="ignore"):
                result = getattr(operator, name)(a, b)
            results.append(result.item() if isinstance(result, np.generic) else result)
        except (ArithmeticError, ValueError):
            results.append(None)
    return results[0], results[1]


@pytest.mark.parametrize("name", OPERATORS)
def test_numbers_are_those_of_python_and_of_numpy_or_refused(name: str) -> None:
    """Whatever is not refused is the same in Python, in NumPy, and in the verifier, to the sign of 0."""
    answered = 0
    for one in NUMBERS:
        for two in NUMBERS:
            if name == "pow" and isinstance(two, int) and two > 7:
                continue  # Python computes all digits
            python, numpy = of_both_kinds(name, one, two)
            for a, b in ((_either(one), _either(two)), (_either(one), two), (one, _either(two))):
                try:
                    result = getattr(operator, name)(a, b)
                except Refused:
                    continue
                answered, found = answered + 1, bare(result)
                assert type(result) in (Count, Float, Truth)  # and not a number of one kind
                assert repr(found) == repr(python) == repr(numpy), (name, one, two)
    assert answered > 200


def _either(number: Any) -> Any:
    return Count(number) if isinstance(number, int) else Float(number)


def test_numbers_have_no_text_and_no_digits() -> None:
    for number in (Count(3), Float(0.5), Truth(True)):
        for shown in (str, repr, "%r".__mod__, format):
            with pytest.raises(Refused, match="as text"):
                shown(number)
    for number in (Count(25), Float(2.675)):
        with pytest.raises(Refused, match="digits"):
            round(number, 2)
    assert (round(Float(2.5)), round(Count(3)), -Float(0.5), abs(Float(-0.5)), float(Float(1.5))) == (
        2,
        3,
        -0.5,
        0.5,
        1.5,
    )


def test_code_that_catches_every_refusal_meets_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(watch, "SECONDS", 0.05)
    monkeypatch.setattr(watch, "last_resort", said.append)
    with watch.watched():
        while not said:
            try:
                while not said:
                    pass
            except Refused:
                pass
    assert "catches every exception" in said[0]


def test_a_live_run_has_memory_of_its_own() -> None:
    """What the function of a policy has kept of what it made is no part of a live run."""

    live, rng = Live(broken_third.held(2, epsilon=1.0)), np.random.default_rng(0)
    broken_third.HELD[-1][1][0] = 123.0
    live.decide(0.0, rng, rng)
    assert live.curator.mean(0) != 123.0
    live.add_arm()
    broken_third.HELD[-1][1][0] = 123.0
    assert live.curator.mean(0) != 123.0


def test_the_same_curator_without_a_fault_is_proved_and_promises_in_a_session() -> None:
    assert prove(broken_third.right(2, epsilon=1.0), 8).epsilon == 1.0
    session = Session(broken_third.right(2, epsilon=1.0))
    assert session.guarantee.epsilon == 1.0


@pytest.mark.parametrize(("name", "epsilon", "needs"), [("Halved", 2.0, 0.3161), ("TwoLooks", 2.0, 0.158)])
def test_a_claim_with_a_delta_is_refuted_by_an_event_of_the_first_stint(
    name: str, epsilon: float, needs: float
) -> None:
    """Laplace noise at half its scale: beyond the value without noise with probability 1/2 against e^-2 / 2."""
    policy = broken_third.MADE[name](2, epsilon=1.0)
    seen = beyond.find_event(policy, 1.0, 1e-6, several=True)
    assert seen is not None
    assert seen.epsilon == pytest.approx(epsilon, rel=1e-5)
    assert f"needs a delta of {needs}" in seen.event
    assert beyond.find_event(policy, 1.0, 1.01 * needs, several=True) is None
    assert beyond.find_event(broken_third.right(2, epsilon=1.0), 1.0, 1e-9, several=True) is None
    alone = beyond.find_event(policy, 1.0, 1e-6, several=False)
    assert (alone is None) == (name == "TwoLooks")  # each of its two releases keeps the claim


class Secret(BernoulliCurator):
    """One reward is answered in clear."""

    def respond(self, reward: float) -> int:
        return 1 if reward == 0.123 else super().respond(reward)


class Later(RandomisedResponse):
    """Answers in clear after a million answers."""

    calls = 0

    def respond(self, reward: float) -> int:
        Later.calls += 1
        return int(reward > 0.5) if Later.calls > 10**6 else super().respond(reward)


class Wraps:
    """Not one of the package's curators, and it has one."""

    epsilon = Fraction(1)

    def __init__(self) -> None:
        self.inner = RandomisedResponse("1")

    def respond(self, reward: float) -> int:
        return 1 if reward == 1e200 else self.inner.respond(reward)


class Other(Flip):
    """A sampler that can do anything."""


@pytest.mark.parametrize("make", [lambda: Secret("1"), lambda: Later("1"), Wraps, lambda: SigmoidCurator(Wraps())])
def test_a_device_that_is_driven_and_not_read_is_not_proved(make: Any) -> None:
    verdict = verify_curator(make(), "1")
    assert verdict.verdict == "not refuted"
    assert "not read" in verdict.reason
    assert "other rewards" in verdict.domain


def test_a_device_of_other_parts_is_not_proved() -> None:
    curator = RandomisedResponse("1")
    curator._flip = Other(curator._flip.probability, os.urandom)  # type: ignore[attr-defined]
    assert verify_curator(curator, "1").verdict == "not refuted"


def test_a_device_has_its_noise_back_after_an_audit() -> None:
    """All 200 answers are the same with probability below 1e-25."""
    curator = RandomisedResponse("1")
    assert verify_curator(curator, "1").verdict == "proved"
    assert {curator.respond(0.0) for _ in range(200)} == {0, 1}
