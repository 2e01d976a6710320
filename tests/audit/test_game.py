"""The statistics of the guessing game. Tolerances follow from the stated probability of failing a correct one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from dpbandits import policies
from dpbandits.audit import attack, attack_responder
from dpbandits.audit.game import check_trials, epsilon_at_least, fewest_guesses, hashed, sequential_bound, train
from dpbandits.audit.targets import PolicyTarget, Responder
from dpbandits.errors import InputError
from dpbandits.policies import lookup

FAILURE = 1e-6


def test_the_bound_exceeds_the_truth_no_more_often_than_alpha() -> None:
    """4000 audits of randomised response, where the bound is tight; more failures than this have probability 1e-6."""
    rng, audits, alpha = np.random.default_rng(0), 4000, 0.1
    right = rng.binomial(500, expit(1.0), audits)
    wrong = sum(epsilon_at_least(int(v), 500 - int(v), 500, alpha) > 1.0 for v in right)
    assert wrong <= stats.binom.isf(FAILURE, audits, alpha)
    assert wrong >= stats.binom.isf(1 - FAILURE, audits, 0.05)  # it is not lazy either


def test_the_bound_with_delta_holds_for_a_mechanism_that_fails_openly() -> None:
    """With probability delta the input is shown, otherwise randomised response: (epsilon, delta)-private, and tight."""
    rng, audits, alpha, delta = np.random.default_rng(1), 2000, 0.1, 0.05
    right = rng.binomial(2000, delta + (1 - delta) * expit(0.5), audits)
    claims = [epsilon_at_least(int(v), 2000 - int(v), 2000, alpha, delta) for v in right]
    assert sum(claim > 0.5 for claim in claims) <= stats.binom.isf(FAILURE, audits, alpha)
    assert np.mean(claims) > 0.35
    naive = [epsilon_at_least(int(v), 2000 - int(v), 2000, alpha) for v in right]
    assert np.mean(np.array(naive) > 0.5) > 0.5  # without the delta the same guesses would refute the truth


def test_the_sequential_bound_holds_however_often_one_looks() -> None:
    """400 sequences of 400 guesses; the bound is of the best moment in each, and exceeds the truth with alpha at most.

    More than this many failures have probability 1e-6.
    """
    rng, alpha = np.random.default_rng(2), 0.1
    ever = sum(sequential_bound(rng.random(400) < expit(1.0), alpha) > 1.0 for _ in range(400))
    assert ever <= stats.binom.isf(FAILURE, 400, alpha)
    rights = rng.random(4000) < expit(1.3)
    assert 1.0 < sequential_bound(rights, 0.01) <= 1.3
    assert sequential_bound(np.zeros(0, bool), 0.01) == 0.0


@pytest.mark.parametrize(("claim", "alpha", "delta"), [(0.1, 0.01, 0.0), (1.0, 1e-3, 0.0), (2.0, 1e-6, 1e-3)])
def test_fewest_guesses_are_the_fewest(claim: float, alpha: float, delta: float) -> None:
    n = fewest_guesses(claim, alpha, delta)
    assert epsilon_at_least(n, 0, n, alpha, delta) > claim
    assert epsilon_at_least(n - 1, 0, n - 1, alpha, delta) <= claim
    assert check_trials(2 * n, claim, alpha, delta) == 2 * n
    with pytest.raises(InputError, match=f"trials must be at least {2 * n}"):
        check_trials(2 * n - 1, claim, alpha, delta)


def test_a_guesser_learns_what_differs_and_abstains_elsewhere() -> None:
    """Code 3 comes from side 1 alone, and the rest tells nothing."""
    rng = np.random.default_rng(3)
    sides = rng.integers(0, 2, 8000)
    codes = np.where((sides == 1) & (rng.random(8000) < 0.2), 3, rng.integers(0, 3, 8000))
    guesser = train(codes[:, None], sides, 1e-3)
    zero, one = guesser.guesses(np.array([[0], [1], [2], [3], [99]]))
    assert one.tolist() == [False, False, False, True, False]
    assert zero.tolist() == [False] * 5


def test_hashes_of_different_sequences_differ() -> None:
    rows = np.unique(np.random.default_rng(4).integers(0, 2, (5000, 40)), axis=0)
    assert len(np.unique(hashed(rows))) == len(rows)


def test_play_is_the_same_for_any_number_of_workers_and_fresh_in_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbandits.audit.targets.CHUNK", 64)
    target = PolicyTarget(policies.adap_ucb(2, epsilon=1.0), 12, "actions")
    pair, sides = target.neighbours()[5], np.random.default_rng(5).integers(0, 2, 1000)
    seen = []
    for workers in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda workers=workers: workers)
        seen.append(target.play(pair, sides, (1, 2)))
    assert np.array_equal(seen[0], seen[1])
    assert (seen[0][:, :2] == [0, 1]).all()  # every trial begins with each arm once
    assert target.compiled


def test_compiled_and_plain_trials_are_the_same() -> None:
    from dpbandits.simulation import trials

    target = PolicyTarget(policies.dp_ucb_bound(2, epsilon=1.0), 20, "released")
    pair, sides = target.neighbours()[3], np.arange(200) % 2
    compiled = target.play(pair, sides, (3,))
    target._play = trials.play_trials
    assert np.array_equal(compiled, target.play(pair, sides, (3,)))


CENTRAL = [name for name in lookup.names() if lookup.sample(name).guarantee.trust == "central"]


@pytest.mark.parametrize("name", CENTRAL)
def test_every_policy_of_ours_is_attacked_compiled(name: str) -> None:
    """Plain Python would play a hundredth of the trials."""
    assert PolicyTarget(lookup.sample(name, horizon=12), 12, "actions").compiled


@pytest.mark.parametrize("view", ["actions", "released"])
def test_a_correct_policy_is_nearly_refuted_but_not(view: str) -> None:
    """The bound comes near 1, so that the attack is a strong one, and stays below (but for probability 1e-6)."""
    policy = policies.adap_klucb(2, epsilon=1.0)
    verdict = attack(policy, claim=1.0, trials=200_000, alpha=1e-6, view=view)
    assert verdict.verdict == "not refuted"
    assert verdict.epsilon is not None
    assert 0.8 < verdict.epsilon <= 1.0
    assert "private" not in str(verdict)
    assert attack(policy, claim=0.7, trials=200_000, alpha=1e-6, view=view).violated


def test_an_anytime_audit_stops_when_it_knows() -> None:
    coin = Responder("coin", lambda reward, rng: float(rng.random() < expit(2.0 if reward else -2.0)))
    verdict = attack_responder(coin, claim=1.0, trials=100_000, alpha=1e-6, anytime=True)
    assert verdict.violated
    assert verdict.trials is not None
    assert verdict.trials < 60_000
    assert verdict.epsilon is not None
    assert 1.0 < verdict.epsilon <= 2.0
    with pytest.raises(InputError, match="delta must be 0 for an anytime audit"):
        attack_responder(coin, claim=1.0, delta=0.01, trials=1000, anytime=True)


def test_bytes_and_texts_are_responses_too() -> None:
    tell = Responder("tell", lambda reward, rng: b"one" if reward else b"nil")
    assert attack_responder(tell, claim=1.0, trials=2000, view="bytes").violated
    keep = Responder("keep", lambda reward, rng: "same")
    assert attack_responder(keep, claim=0.1, trials=2000, view="bytes").epsilon == 0.0


def flipped(reward: float, rng: np.random.Generator) -> int:
    """Randomised response at epsilon 1."""
    return int((reward >= 0.5) != (rng.random() < expit(-1.0)))


SPEAKING: dict[str, Callable[[float, np.random.Generator], Any]] = {
    "NaN in clear": lambda reward, rng: 2 if math.isnan(reward) else flipped(reward, rng),
    "infinity in clear": lambda reward, rng: 2 if reward == math.inf else flipped(reward, rng),
    "minus infinity in clear": lambda reward, rng: 2 if reward == -math.inf else flipped(reward, rng),
    "7 in clear": lambda reward, rng: 2 if reward > 1 else flipped(reward, rng),
    "-1 in clear": lambda reward, rng: 2 if reward < 0 else flipped(reward, rng),
    "0.5 in clear": lambda reward, rng: 2 if reward == 0.5 else flipped(reward, rng),
    "0.3 in clear": lambda reward, rng: 2 if reward == 0.3 else flipped(reward, rng),
    "not clamped": lambda reward, rng: (reward if math.isfinite(reward) else 0.0) + rng.laplace(),
    "integers beyond 2^53": lambda reward, rng: 2**60 + int(reward >= 0.5),
    "integers beyond 2^63": lambda reward, rng: 2**200 + int(reward >= 0.5),
    "trailing zero bytes": lambda reward, rng: b"a" + bytes(int(reward >= 0.5)),
    "a text or its bytes": lambda reward, rng: "x" if reward >= 0.5 else b"y",
    "an integer or a float": lambda reward, rng: 1.0 if reward >= 0.5 else 1,
    "minus zero": lambda reward, rng: math.copysign(0.0, reward - 0.5 if reward == reward else -1.0),
    "one bit among random ones": lambda reward, rng: int(rng.integers(1 << 62)) & ~(1 << 17) | int(reward >= 0.5) << 17,
    "one byte among random ones": lambda reward, rng: rng.bytes(20) + bytes([int(reward >= 0.5)]),
}


@pytest.mark.parametrize("name", SPEAKING)
def test_devices_that_speak_are_caught(name: str) -> None:
    speaks = Responder(name, SPEAKING[name])
    verdict = attack_responder(speaks, claim=1.2, trials=4000, alpha=1e-6, view="bytes")
    assert verdict.violated, verdict


def test_a_right_device_is_not_refuted_with_any_pair_of_rewards() -> None:
    """Fails with probability 1e-6, and the seed is fixed."""
    for view in ("response", "bytes"):
        verdict = attack_responder(Responder("right", flipped), claim=1.0, trials=20_000, alpha=1e-6, view=view)
        assert verdict.verdict == "not refuted"
        assert verdict.epsilon is not None
        assert verdict.epsilon > 0.7


def test_a_device_that_raises_is_a_fault_and_names_the_reward() -> None:
    def strict(reward: float, rng: np.random.Generator) -> int:
        if not 0 <= reward <= 1:
            raise ValueError("0.8731")
        return flipped(reward, rng)

    with pytest.raises(InputError, match="strict must respond to every reward, because silence tells; to 7 it raises"):
        attack_responder(Responder("strict", strict), claim=1.0, trials=2000)
