"""The piecewise mechanism: the law that is drawn, its privacy with all rounding, and that every version has it."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpbandits as dp
from dpbandits import audit
from dpbandits.curators import LocalPiecewise
from dpbandits.exact import PiecewiseCurator, RiggedNoise, SystemNoise, Window, window_width
from dpbandits.exact import sampling as samplers
from dpbandits.mechanisms import piecewise, piecewise_mean, window_probability

GRID = 1 << 16
TOP = (1 << 64) - 1
LEVELS = ("0.001", "0.1", "1/3", "1", "1.5", "2", "5", "10", "25", "100")


def drawn(words: list[int]) -> Any:
    """Entropy that gives these words, and then the largest ones."""
    left = iter(words)
    return lambda n: b"".join(next(left, TOP).to_bytes(8, "little") for _ in range(n // 8))


@pytest.mark.parametrize("level", ["1/3", "1", "2.5", "9"])
def test_the_law_is_the_windows_over_the_whole_tree_of_the_sampler(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a grid of 0 to 8 every way through the sampler is taken, and its probability added up, exactly."""
    monkeypatch.setattr(samplers, "WINDOW_GRID", 3)
    epsilon, grid = Fraction(level), 8
    made = Window(epsilon, drawn([]))
    width, outside = made.width, made.outside
    p = Fraction(outside.digits(3), 1 << 192)  # to 192 bits
    laws: list[dict[int, Fraction]] = []
    for value in range(grid + 1):
        law: dict[int, Fraction] = {}
        borders = [-((-place << 64) // width) for place in range(width + 1)]
        for place, there in itertools.product(range(width), range(grid)):
            for word in {borders[place], (borders[place] + borders[place + 1]) // 2, borders[place + 1] - 2}:
                for first, expected in ((outside.word(0) - 1, True), (outside.word(0) + 1, False)):
                    response = Window(epsilon, drawn([first, word, there << 61]))(value)
                    inside = value <= response < value + width
                    assert inside is not expected
            for first, chance in ((0, p / grid / width), (TOP, (1 - p) / grid / width)):
                response = Window(epsilon, drawn([first, borders[place], there << 61]))(value)
                law[response] = law.get(response, Fraction(0)) + chance
        assert sum(law.values()) == 1
        assert sorted(law) == list(range(grid + width))
        laws.append(law)
    ratio = max(one[k] / two[k] for one in laws for two in laws for k in one)
    with localcontext() as context:
        context.prec = 60
        loss = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        assert abs(loss - Decimal(epsilon.numerator) / Decimal(epsilon.denominator)) < Decimal("1e-40")


def test_places_that_64_digits_do_not_decide_take_more_digits() -> None:
    """The border between two places is inside a word: the next word decides on which side, at its own border."""
    made = Window(Fraction(2), drawn([]))
    border, rest = divmod(5 << 64, made.width)
    after = (rest << 64) // made.width
    for second, expected in ((after - 1, 4), (after + 1, 5), (0, 4), (TOP, 5)):
        assert Window(Fraction(2), drawn([TOP, border, 0, second]))(0) == expected
    tie = made.outside
    assert Window(Fraction(2), drawn([tie.word(0), 0, 0, tie.word(1) - 1]))(0) == made.width
    assert Window(Fraction(2), drawn([tie.word(0), 0, 0, tie.word(1) + 1]))(0) == 0


@pytest.mark.parametrize("level", ["1/3", "2", "5", "10", "25", "100"])
def test_a_device_is_proved_to_the_last_unit(level: str) -> None:
    verdict = audit.verify_curator("piecewise", level)
    assert verdict.verdict == "proved", verdict
    assert verdict.epsilon == pytest.approx(float(Fraction(level)))


class Cheap(PiecewiseCurator):
    """Made for twice the epsilon that it says."""

    def __init__(self) -> None:
        super().__init__("2")
        self._window = SystemNoise().window(Fraction(4))


class Skewed(PiecewiseCurator):
    """Its places outside are cut off at the top."""

    def respond(self, reward: float) -> int:
        return min(super().respond(reward), GRID)


class Raw(PiecewiseCurator):
    """Does not clamp."""

    def respond(self, reward: float) -> int:
        return self._window(int(reward * GRID) if reward == reward and abs(reward) < 1e9 else 0)


@pytest.mark.parametrize("made", [Cheap, Skewed, Raw])
def test_broken_devices_are_not_proved(made: Any) -> None:
    verdict = audit.verify_curator(made() if made is Cheap else made("2"), "2")
    assert verdict.verdict != "proved"


@pytest.mark.parametrize("level", [*LEVELS, "0.0001", "700"])
def test_what_is_simulated_is_private_with_all_rounding(level: str) -> None:
    """The largest probability of a response over the least one is at most e^epsilon, as the floats are."""
    epsilon = float(Fraction(level))
    width = window_width(Fraction(level))
    inside = Fraction(math.ceil(Fraction(window_probability(float(width), epsilon)) * 2**53), 2**53)  # that u < inside
    largest = inside * Fraction(1, width) * (1 + Fraction(1, 2**36))
    least = (1 - inside) / GRID
    assert largest > 0
    with localcontext() as context:
        context.prec = 400
        exact = (Decimal(Fraction(level).numerator) / Decimal(Fraction(level).denominator)).exp()
        assert Decimal((largest / least).numerator) / Decimal((largest / least).denominator) <= exact
    if epsilon < 10:
        assert float(largest / least) >= math.exp(epsilon) * (1 - 1e-5)


def test_places_from_53_bits_are_equally_likely_up_to_two_parts_in_a_word() -> None:
    """For a thousand widths and places: how many multiples of 2^-53 give the place, by bisection."""
    rng = np.random.default_rng(0)

    def first(width: float, place: int) -> int:
        low, high = 0, 1 << 53
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if int(middle * 2.0**-53 * width) >= place else (middle + 1, high)
        return low

    for width in [1, 2, 3, GRID, *rng.integers(1, GRID + 1, 300).tolist()]:
        for place in {0, width - 1, *rng.integers(0, width, 3).tolist()}:
            count = first(float(width), place + 1) - first(float(width), place) if place < width - 1 else None
            if count is not None:
                assert abs(count - 2**53 / width) <= 2


def test_the_mean_is_that_of_the_law() -> None:
    for level in LEVELS:
        width = float(window_width(Fraction(level)))
        inside = window_probability(width, float(Fraction(level)))
        offset, slope = piecewise_mean(width, inside)
        for start in (0, 1, 12345, GRID):
            total = (GRID + width) * (GRID + width - 1) / 2
            window = width * start + width * (width - 1) / 2
            mean = inside * window / width + (1 - inside) * (total - window) / GRID
            assert mean / GRID == pytest.approx(offset + slope * start / GRID, rel=1e-12)


def test_simulated_and_exact_responses_have_one_law() -> None:
    """Kolmogorov and Smirnov's distance of 2 x 20,000 responses; a right one fails with probability below 1e-6."""
    rng, n = np.random.default_rng(5), 20_000
    for level, reward in (("1", 0.3), ("2", 1.0), ("4", 0.0)):
        width = float(window_width(Fraction(level)))
        inside = window_probability(width, float(level))
        one = np.sort([piecewise(round(reward * GRID) / GRID, width, inside, rng) * GRID for _ in range(n)])
        device = PiecewiseCurator(level, RiggedNoise(rng.bytes))
        two = np.sort([device.respond(reward) for _ in range(n)])
        points = np.unique(np.concatenate([one, two]))
        distance = np.abs(np.searchsorted(one, points, "right") - np.searchsorted(two, points, "right")).max() / n
        assert distance < math.sqrt(-0.5 * math.log(1e-6 / 2) * 2 / n)


def test_a_session_takes_the_responses_of_devices() -> None:
    session = dp.Session("ldp-imed-p", arms=2, epsilon="2")
    for number in range(20):
        decision = session.ask()
        if number % 2:
            response: Any = session.device().respond(decision, 0.3)
            assert 0 <= response.value * GRID < GRID + window_width(Fraction(2))
        else:
            made = PiecewiseCurator("2").respond(0.3)
            response = dp.exact.wire.encode(decision.id, Fraction(2), made)
        assert session.tell(decision, response) == "used"
    decision = session.ask()
    for wrong in (-1, GRID + window_width(Fraction(2))):
        with pytest.raises(dp.InputError, match="is a value that no device of ldp-imed-p sends"):
            session.tell(decision, dp.exact.wire.encode(decision.id, Fraction(2), wrong))


def test_debiased_responses_are_unbiased_and_have_the_papers_variance() -> None:
    """Wang et al. 2019, Lemma 1, for rewards in [-1, 1]; 40,000 draws, six standard errors (1e-8 each)."""
    rng, n = np.random.default_rng(1), 40_000
    for epsilon in (1.0, 2.0, 4.0):
        curator = LocalPiecewise.start(2, epsilon=epsilon)
        for reward in (0.0, 0.4, 1.0):
            made = np.array([curator.respond(reward, 0.0, rng) for _ in range(n)])
            debiased = (made - curator.offset) / curator.slope
            root = math.exp(epsilon / 2)
            printed = ((2 * reward - 1) ** 2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)) / 4
            assert abs(debiased.mean() - reward) < 6 * math.sqrt(printed / n) + 2**-15
            assert debiased.var() == pytest.approx(printed, rel=0.05)
