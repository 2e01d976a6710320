"""OpenDP, an implementation that shares nothing with ours: its privacy maps, and the law of its noise and of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction

import pytest
from scipy import stats

from dpbandits.errors import MissingExtraError
from dpbandits.exact import BernoulliCurator, LaplaceCurator, RandomisedResponse, SystemNoise, require_exact
from dpbandits.exact.opendp import OpenDPNoise

LEVELS = ("1/1000000", "0.1", "1/3", "1", "10", "100", "1000")


@pytest.fixture(scope="module")
def opendp() -> OpenDPNoise:
    pytest.importorskip("opendp.prelude")
    return OpenDPNoise()


def test_without_opendp_the_pip_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[opendp\]'"):
        OpenDPNoise()


def test_it_is_exact_noise(opendp: OpenDPNoise) -> None:
    assert require_exact(opendp) is opendp
    assert opendp.uniform(48) < 2**48


@pytest.mark.parametrize("level", LEVELS)
def test_opendp_itself_promises_no_more_than_epsilon(opendp: OpenDPNoise, level: str) -> None:
    epsilon = Fraction(level)
    flip: object = opendp.randomised_response(epsilon)
    noise: object = opendp.discrete_laplace(epsilon, 1 << 16)
    promised = Fraction(flip.map(1)), Fraction(noise.map(1 << 16))  # type: ignore[attr-defined]
    assert all(promise <= epsilon for promise in promised)
    assert promised[1] >= epsilon * (1 - Fraction(1, 10**15))
    assert promised[0] >= min(epsilon, Fraction(367, 10)) * (1 - Fraction(1, 10**9))


def test_curators_take_it_in_place_of_ours(opendp: OpenDPNoise) -> None:
    assert RandomisedResponse("1", opendp).respond(1) in (0, 1)
    assert BernoulliCurator("1", opendp).respond(0.3) in (0, 1)
    assert isinstance(LaplaceCurator("1", opendp).respond(0.3), int)


def test_it_has_the_verbs_of_a_generator(opendp: OpenDPNoise) -> None:
    assert 0.0 <= opendp.random() < 1.0
    assert ((0.25 + opendp.laplace(0.0, 1.0)) * 65536).is_integer()


@pytest.mark.parametrize("sensitivity", [3, 10])
def test_opendp_passes_the_test_that_ours_passes(
    opendp: OpenDPNoise, sensitivity: int, fit: Callable[..., bool], two_sided: Callable[..., object]
) -> None:
    """Fails with probability 1e-9. At scale 3 OpenDP 0.9 to 0.14.1 would fail it always."""
    noise = opendp.discrete_laplace(Fraction(1), sensitivity)
    assert fit([noise(0) for _ in range(8000)], two_sided(1 / sensitivity))


def test_the_two_implementations_have_one_law(opendp: OpenDPNoise) -> None:
    """Two samples of one law fail with probability 1e-9; a shift by half the scale is caught, so the test can fail."""
    ours = SystemNoise().discrete_laplace(Fraction(1, 4), 1)
    theirs = opendp.discrete_laplace(Fraction(1, 4), 1)
    first, second = [ours(0) for _ in range(8000)], [theirs(0) for _ in range(8000)]
    assert stats.ks_2samp(first, second).pvalue >= 1e-9
    assert stats.ks_2samp([draw + 2 for draw in first], second).pvalue < 1e-9
