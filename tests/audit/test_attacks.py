"""Policies that were written to fool the verifier, and right ones that were written to alarm it.

No broken one is proved, and no right one is violated. What is violated is so by no more than the truth. The truth is a
closed form, held against a brute force that shares no code with the audits.
"""

from __future__ import annotations

import math
from types import ModuleType

import broken_central
import broken_hostile
import broken_local
import oracle
import pytest
import right_subjects

from dpbandits.audit import verify

#: Broken only in later rounds, or at rewards, levels or arms that the brute force does not try, or where noise decides.
NOT_SEEN_BY_BRUTE_FORCE = {
    *("after_fifty", "arm_two", "cut_off", "level_leak", "own_absorb", "peeks_late", "shallow_tree", "two_rewards"),
    "when_noise_is_large",
}
#: With a source of chance of their own, without end, or broken by rounding: the brute force cannot play them.
NOT_PLAYED = {"redraws", "on_exact_noise", "through_a_generator", "swallowed"}
#: What the verifier neither proves nor refutes: the verdict gives the reason.
MISSED = {
    *("after_fifty", "cut_off", "level_leak", "own_absorb", "redraws", "shallow_tree", "through_a_generator"),
    *("two_rewards", "when_noise_is_large", "swallowed"),
    *("after_many", "fake_field", "one_sided", "rare", "rejects", "second_look", "strided"),
    *("level", "off_the_grid", "stashes", "two_uniforms", "both_functions", "writes_memory"),
}
BROKEN = [(module, name) for module in (broken_central, broken_local, broken_hostile) for name in module.TRUTH]


def test_there_are_enough() -> None:
    assert len(BROKEN) >= 80
    assert len(right_subjects.TRUTH) >= 12


@pytest.mark.parametrize(("module", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_no_broken_policy_is_proved(module: ModuleType, name: str) -> None:
    verdict = verify(getattr(module, name), epsilon=1.0, claim=1.0)
    truth = module.TRUTH[name]
    assert truth > 1.0
    assert verdict.verdict in ("violated", "not refuted", "refused"), f"{verdict}"
    if verdict.violated:
        assert verdict.epsilon is not None
        assert 1.0 < verdict.epsilon <= truth * (1.0 + 1e-6)
        assert verdict.witness
    else:
        assert verdict.reason
        assert name in MISSED, f"a violation that was found before:\n{verdict}"


@pytest.mark.parametrize("name", right_subjects.TRUTH)
def test_no_right_policy_is_violated(name: str) -> None:
    verdict = verify(getattr(right_subjects, name), epsilon=1.0)
    if name in right_subjects.PROVABLE:
        assert verdict.verdict == "proved", f"{verdict}"
        assert verdict.epsilon is not None
        worst = max(verdict.epsilon, verdict.released or 0.0)
        assert worst == pytest.approx(right_subjects.TRUTH[name], rel=1e-9)
    else:
        assert verdict.verdict in ("not refuted", "refused"), f"{verdict}"
        assert verdict.reason


def test_a_claim_below_the_truth_is_violated_for_right_ones_too() -> None:
    for name in ("exact_noise", "drawn_ahead", "half_each", "turned", "warner", "two_coins"):
        assert verify(getattr(right_subjects, name), epsilon=1.0, claim=0.9).violated


@pytest.mark.parametrize("name", sorted({*broken_central.TRUTH} - NOT_PLAYED))
def test_the_truth_of_broken_central_policies(name: str) -> None:
    found = oracle.true_epsilon(getattr(broken_central, name)(2, epsilon=1.0), longer=8)
    assert found <= broken_central.TRUTH[name] * (1.0 + 1e-6)
    assert (found > 1.0 + 1e-6) == (name not in NOT_SEEN_BY_BRUTE_FORCE)


CENTRAL = {n for n in right_subjects.TRUTH if getattr(right_subjects, n)(2, epsilon=1.0).guarantee.trust == "central"}
OTHERWISE = {"exact_noise", "two_sources", "above_threshold", "randomised_agent", "clamped_after"}


@pytest.mark.parametrize("name", sorted(CENTRAL - OTHERWISE))
def test_the_truth_of_right_central_policies(name: str) -> None:
    """Those left out have their own entropy, two noises in a number, or noise that decides: see the closed forms."""
    found = oracle.true_epsilon(getattr(right_subjects, name)(2, epsilon=1.0), longer=8)
    assert found == pytest.approx(right_subjects.TRUTH[name], rel=1e-6)


def test_the_brute_force_knows_halved_noise_and_leaks() -> None:
    assert oracle.true_epsilon(broken_central.scaled(2, epsilon=0.5)) == pytest.approx(1.0)
    assert math.isinf(oracle.true_epsilon(broken_central.shows_noise(2, epsilon=0.5)))
