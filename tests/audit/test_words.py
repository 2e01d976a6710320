"""``audit curator --exact`` finds the words that the real call compares with: none that is wrong is proved."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpbandits.audit import verify_curator
from dpbandits.errors import InputError
from dpbandits.exact import (
    BernoulliCurator,
    DiscreteLaplace,
    Flip,
    LaplaceCurator,
    LocalCurator,
    RandomisedResponse,
    RiggedNoise,
    SigmoidCurator,
    SystemNoise,
    grid_steps,
    logistic,
)

Makes = Callable[[], LocalCurator]


def bit(change: Callable[[int], int], epsilon: str = "1") -> Makes:
    """Convert-to-Bernoulli whose first threshold is changed."""

    def make() -> LocalCurator:
        curator = BernoulliCurator(epsilon)
        flip: Any = curator._flip
        flip._first = change(flip._first)
        return curator

    return make


def laplace(place: int, change: Callable[[int], int], epsilon: str = "1") -> Makes:
    """The Laplace curator of which one threshold is changed."""

    def make() -> LocalCurator:
        curator = LaplaceCurator(epsilon)
        noise: Any = curator._noise
        noise._words = tuple(change(w) if n == place else w for n, w in enumerate(noise._words))
        return curator

    return make


def at(epsilon: str, inner: LocalCurator) -> LocalCurator:
    """A curator that is said to have another level than the noise was made for."""
    inner._epsilon = Fraction(epsilon)  # type: ignore[attr-defined]
    return inner


class OtherTies(BernoulliCurator):
    """After a tie, digits of another probability decide."""

    def __init__(self) -> None:
        super().__init__("1")
        flip: Any = self._flip
        flip.probability = logistic(Fraction(3))


class Ties(RandomisedResponse):
    """A tie counts as smaller: wrong once in 2^64 draws."""

    def respond(self, reward: float) -> int:
        flip: Any = self._flip
        uniform = int.from_bytes(flip._entropy(8), "little")
        return int((reward == 1) != (uniform <= flip._first))


class Coarse(RandomisedResponse):
    """Only 16 of 64 bits are compared."""

    def respond(self, reward: float) -> int:
        flip: Any = self._flip
        uniform = int.from_bytes(flip._entropy(8), "little")
        return int((reward == 1) != (uniform >> 48 < flip._first >> 48))


class Window(RandomisedResponse):
    """One eighth of all random words is not private."""

    def respond(self, reward: float) -> int:
        flip: Any = self._flip
        uniform = int.from_bytes(flip._entropy(8), "little")
        if uniform >> 61 == 5:
            return int(reward >= 0.5)
        return int((reward >= 0.5) != (uniform < flip._first))


class NoNumber(BernoulliCurator):
    """What is not a number is answered in clear."""

    def respond(self, reward: float) -> int:
        return 1 if reward != reward else super().respond(reward)


class Louder(BernoulliCurator):
    """A reward above 1 is answered without noise."""

    def respond(self, reward: float) -> int:
        answer = super().respond(reward)
        return 1 if reward is not None and reward > 1 else answer


class Half(BernoulliCurator):
    """The reward decides how much the device lies."""

    def respond(self, reward: float) -> int:
        answer = super().respond(reward)
        return answer if reward in (0.0, 1.0) else super().respond(reward) & answer


class Unclamped(LaplaceCurator):
    """A reward of 7 is seven times as visible."""

    def respond(self, reward: float) -> int:
        return self._noise(int(reward * 65536) if reward is not None and math.isfinite(reward) else 0)


class OneSided(LaplaceCurator):
    """Only noise above 0."""

    def respond(self, reward: float) -> int:
        point = grid_steps(reward, 16)
        return point + abs(self._noise(0))


class Rounded(LaplaceCurator):
    """The noise is even, so the last bit of the reward is shown."""

    def respond(self, reward: float) -> int:
        return grid_steps(reward, 16) + 2 * self._noise(0)


class Bounded(LaplaceCurator):
    """The tail is cut off: not pure."""

    def respond(self, reward: float) -> int:
        point = grid_steps(reward, 16)
        return point + max(-(1 << 21), min(1 << 21, self._noise(0)))


class Floating(LaplaceCurator):
    def respond(self, reward: float) -> int:
        return super().respond(reward) / 65536  # type: ignore[return-value]


class OwnEntropy:
    """Right, for all that the audit can know: it draws from a generator of its own."""

    epsilon = Fraction(1)

    def respond(self, reward: float) -> int:
        return int((reward >= 0.5) != (random.Random().random() < 0.2689))


class Twice(BernoulliCurator):
    """Draws again until it likes the answer."""

    def respond(self, reward: float) -> int:
        return super().respond(reward) | super().respond(reward)


def rate_of(factor: Fraction) -> Makes:
    def make() -> LocalCurator:
        curator = LaplaceCurator("1")
        curator._noise = DiscreteLaplace(factor / 65536, SystemNoise()._entropy)
        return curator

    return make


def flip_of(level: str) -> Makes:
    def make() -> LocalCurator:
        curator = BernoulliCurator("1")
        curator._flip = Flip(logistic(Fraction(level)), SystemNoise()._entropy)
        return curator

    return make


#: Each with a lower bound on its true epsilon where that is above 1, and 0 where the loss is below it or not found.
BROKEN: dict[str, tuple[Makes, float]] = {
    "an eighth of the lies": (bit(lambda word: word >> 3), math.log(8 / 0.268942 - 1) - 1e-3),
    "one unit fewer lies": (bit(lambda word: word - 1), 1.0),
    "one unit more lies": (bit(lambda word: word + 1), 0.0),
    "twice the lies": (bit(lambda word: min(2 * word, 2**64 - 1)), 0.0),
    "no lies in 2^64 draws": (bit(lambda word: 0), 44.0),
    "lies of another level": (flip_of("2"), 2.0 - 1e-9),
    "lies of a lower level": (flip_of("1/2"), 0.0),
    "another level is stated": (lambda: at("1", RandomisedResponse("3")), 3.0 - 1e-9),
    "another level is stated of Laplace noise": (lambda: at("1", LaplaceCurator("8")), 7.9),
    "other digits after a tie": (OtherTies, 1.0),
    "ties are smaller": (lambda: Ties("1"), 0.0),
    "sixteen bits": (lambda: Coarse("1"), 1.00002),
    "a window without noise": (lambda: Window("1"), 0.0),
    "NaN in clear": (lambda: NoNumber("1"), 0.0),
    "7 in clear": (lambda: Louder("1"), 0.0),
    "another law inside": (lambda: Half("1"), 0.0),
    "drawn again": (lambda: Twice("1"), 0.0),
    "not clamped": (lambda: Unclamped("1"), 0.0),
    "one-sided": (lambda: OneSided("1"), 0.0),
    "even noise": (lambda: Rounded("1"), 0.0),
    "cut off": (lambda: Bounded("1"), 0.0),
    "a float": (lambda: Floating("1"), 0.0),
    "half the Laplace noise": (rate_of(Fraction(2)), 2.0 - 1e-5),
    "Laplace noise with one part in 10^30 missing": (rate_of(1 + Fraction(1, 10**30)), 0.0),
    "twice the Laplace noise": (rate_of(Fraction(1, 2)), 0.0),
    # What changes only the last bit or a very rare one costs less than 1 in the end, but is not what was promised.
    **{f"an eighth of word {n}": (laplace(n, lambda word: word >> 3), 0.0) for n in (1, 22, 45)},
    **{f"an eighth of word {n}": (laplace(n, lambda word: word >> 3), 1.01) for n in (6, 30)},
    **{f"word {n} one unit less": (laplace(n, lambda word: word - 1), 0.0) for n in (1, 22, 30)},
    **{f"word {n} one unit more": (laplace(n, lambda word: word + 1), 0.0) for n in (0, 8, 23, 45)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_broken_curator_is_proved(name: str) -> None:
    make, least = BROKEN[name]
    verdict = verify_curator(make(), "1")
    assert verdict.verdict == ("violated" if least else "not refuted"), verdict
    assert verdict.reason
    if least:
        assert verdict.epsilon is not None
        assert verdict.epsilon >= least
        one, other = verdict.witness["probabilities"]
        assert abs(math.log(one / other)) == pytest.approx(verdict.epsilon, rel=1e-5)


@pytest.mark.parametrize("epsilon", ["0.000001", "1/3", "2.5", "40", "500"])
@pytest.mark.parametrize("make", [RandomisedResponse, BernoulliCurator, LaplaceCurator])
def test_right_curators_are_proved(make: Callable[[str], LocalCurator], epsilon: str) -> None:
    verdict = verify_curator(make(epsilon), epsilon)
    assert verdict.verdict == "proved"
    assert verdict.epsilon == pytest.approx(float(Fraction(epsilon)), rel=1e-11)
    assert "nan, None" in verdict.domain
    low, high = map(Fraction, verdict.witness["epsilon"])
    assert abs(low - Fraction(epsilon)) < Fraction(1, 10**29)
    assert abs(high - Fraction(epsilon)) < Fraction(1, 10**29)


def test_the_claim_is_compared_exactly() -> None:
    for share, expected in ((1 + Fraction(1, 10**30), "proved"), (1 - Fraction(1, 10**30), "violated")):
        assert verify_curator("bernoulli", "1/3", Fraction(1, 3) * share).verdict == expected


def test_a_curator_inside_another_is_driven_too() -> None:
    assert verify_curator(SigmoidCurator(LaplaceCurator("1")), "1").verdict == "proved"
    assert verify_curator(SigmoidCurator(laplace(30, lambda word: word >> 3)()), "1").verdict != "proved"
    assert verify_curator(SigmoidCurator(bit(lambda word: word >> 3)()), "1").violated


@pytest.mark.parametrize("make", [OwnEntropy, lambda: BernoulliCurator("1", RiggedNoise(bytes))])
def test_entropy_of_ones_own_is_refused_and_never_violated(make: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match=r"curator must draw from os\.urandom by dpbandits\.exact to be verified"):
        verify_curator(make(), "1")


def test_the_audit_does_not_touch_the_entropy_of_others() -> None:
    before = BernoulliCurator("1/1000")
    verify_curator("bernoulli", "1/1000")
    assert {SystemNoise().uniform(64) for _ in range(20)}.__len__() == 20
    assert len({before.respond(0.5) for _ in range(200)}) == 2, "equal 200 times with probability 2^-199"


@pytest.mark.parametrize("wrong", ["first", "digits", "rate"])
def test_a_fault_in_the_package_itself_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is put: in the word that is compared, in the digits of a probability, or in the rate of the noise."""
    if wrong == "first":
        original = Flip.__init__

        def init(self: Any, probability: Any, entropy: Any) -> None:
            original(self, probability, entropy)
            self._first >>= 3

        monkeypatch.setattr(Flip, "__init__", init)
        assert verify_curator("randomised-response", "1").violated
    elif wrong == "digits":
        monkeypatch.setattr("dpbandits.exact.noise.logistic", lambda x: logistic(x / 8))
        assert verify_curator("bernoulli", "1").verdict == "not refuted"
    else:
        monkeypatch.setattr("dpbandits.exact.noise.DiscreteLaplace", lambda rate, to: DiscreteLaplace(8 * rate, to))
        assert verify_curator("laplace", "1").violated
