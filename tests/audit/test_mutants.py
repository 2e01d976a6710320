"""Every mutant is caught. What is exact is caught with certainty; games are at fixed seeds, at error 1e-6."""

from __future__ import annotations

import math

import audit_mutants as mutants
import pytest

from dpbandits import policies
from dpbandits.audit import attack, attack_responder, own_subject, responder, verify, verify_curator
from dpbandits.audit.releases import Step, enter_all, played
from dpbandits.audit.targets import Responder
from dpbandits.policies import lookup
from dpbandits.privacy.ledger import Ledger, LedgerError

ALPHA = 1e-6

#: What 12 rounds of each show at epsilon 1: twice halved noise; a stint's first reward again in 4, in 3 releases.
EXACT: dict[str, tuple[lookup.Factory, float]] = {
    "noise halved": (mutants.halved, 2.0),
    "first reward without noise": (mutants.first_without_noise, math.inf),
    "the same seed every time": (mutants.same_seed, math.inf),
    "nothing forgotten": (mutants.not_forgetting, 4.0),
    "drawn again when another arm's mean is": (mutants.redrawn, 3.0),
    "one draw for all arms": (mutants.shared_draw, math.inf),
}


@pytest.mark.parametrize("fault", EXACT)
def test_the_exact_verifier_catches(fault: str) -> None:
    factory, worst = EXACT[fault]
    verdict = verify(factory(2, epsilon=1.0))
    assert verdict.violated
    assert verdict.epsilon == pytest.approx(worst, abs=1e-3)
    assert verdict.witness["event"]


def test_a_wrong_sensitivity_is_seen_in_the_releases_at_once_and_in_the_actions_later() -> None:
    """Noise for a sensitivity of 1/n: a stint of n rewards loses n epsilon; 8 actions do not yet show it."""
    policy = mutants.wrong_sensitivity(2, epsilon=1.0)
    for view in (None, "released"):
        verdict = verify(policy, view=view)
        assert (verdict.verdict, verdict.epsilon) == ("violated", 4.0)
    assert attack(policy, claim=1.0, trials=200_000, alpha=ALPHA, horizon=12).violated


def test_dp_ucb_int_as_printed_is_not_proved() -> None:
    """Its releases grow with every round. With a delta that is no witness, so it is not called violated."""
    kept = policies.dp_ucb_int(2, epsilon=1.0, delta=1e-4, schedule="constant")
    assert verify(kept, horizon=500).verdict in ("proved", "vacuous")
    printed = verify(mutants.printed_interval(2, epsilon=1.0), horizon=500)
    assert printed.verdict == "not refuted"
    assert printed.reason


@pytest.mark.parametrize("factory", [mutants.halved, mutants.first_without_noise, mutants.redrawn])
def test_the_auditor_catches_by_actions_alone(factory: lookup.Factory) -> None:
    verdict = attack(factory(2, epsilon=1.0), claim=1.0, trials=100_000, alpha=ALPHA, horizon=12)
    assert verdict.violated
    assert verdict.witness["event"].startswith("actions begin with 0")
    assert verdict.witness["right"] > verdict.witness["wrong"]
    assert "plain Python" not in verdict.domain


def test_the_auditor_catches_what_only_plain_python_can_play() -> None:
    verdict = attack(mutants.same_seed(2, epsilon=1.0), claim=1.0, trials=200, alpha=1e-3, horizon=5)
    assert verdict.violated
    assert "plain Python" in verdict.domain


def test_the_auditor_catches_halved_noise_in_released_means() -> None:
    policy = mutants.halved(2, epsilon=1.0)
    assert attack(policy, claim=1.0, view="released", trials=20_000, alpha=ALPHA, horizon=6).violated


def test_float_noise_is_caught_by_its_low_bits_and_exact_noise_is_not() -> None:
    faulty = own_subject(mutants.float_laplace, "float", 1.0, horizon=1, options={})
    assert isinstance(faulty, Responder)
    seen = attack_responder(faulty, claim=1.0, view="bytes", trials=20_000, alpha=ALPHA)
    assert seen.violated
    assert (seen.epsilon or 0.0) > 4.0
    assert not attack_responder(faulty, claim=1.0, view="response", trials=20_000, alpha=ALPHA).violated
    for name in ("laplace", "bernoulli", "randomised-response"):
        assert verify_curator(name, "1").verdict == "proved"
        assert not attack_responder(responder(name, "1"), claim=1.0, view="bytes", trials=20_000, alpha=ALPHA).violated


def test_the_ledger_refuses_what_is_drawn_twice_and_what_costs_too_much() -> None:
    steps = [Step(0, True), Step(1, True), Step(1, True)]
    with pytest.raises(LedgerError, match="drawn once"):
        enter_all(mutants.redrawn(2, epsilon=1.0), steps, Ledger(10))
    with pytest.raises(LedgerError, match="reward 1 must lose at most 1, got 2"):
        enter_all(mutants.halved(2, epsilon=1.0), steps, Ledger(1))
    with pytest.raises(LedgerError, match="must be under noise"):
        enter_all(mutants.first_without_noise(2, epsilon=1.0), steps, Ledger(1))
    correct = policies.adap_ucb(2, epsilon=1.0)
    ledger = Ledger(1)
    enter_all(correct, played(correct, [0.0, 1.0] * 10, 0), ledger)
    assert ledger.worst() == 1
