"""IMED, KL-UCB and Thompson sampling on private bits, against a second implementation and against LDP-UCB-B."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from naive import kl, local_imed, local_kl_ucb, responses, tied

import dpbandits as dp
from dpbandits.numerics import corrected, corrected_room, kl_lower, uncorrected


@pytest.mark.parametrize("correction", [0.0, 1.0, 2.5])
def test_ldp_imed_b_plays_the_least_index(correction: float) -> None:
    policy = dp.policies.ldp_imed_b(arms=3, epsilon=1.0, correction=correction)
    for _, arm, _, bits in responses(policy, (0.9, 0.6, 0.8), 1500, 1):
        if all(bits):
            assert tied(arm, local_imed(bits, correction))


def test_ldp_klucb_b_plays_the_largest_index() -> None:
    policy = dp.policies.ldp_klucb_b(arms=3, epsilon=1.0)
    for t, arm, _, bits in responses(policy, (0.9, 0.6, 0.8), 700, 2):
        if all(bits):
            assert tied(arm, local_kl_ucb(bits, t))


def test_ldp_ts_b_plays_the_largest_draw_of_a_beta_posterior() -> None:
    policy, rng = dp.policies.ldp_ts_b(arms=3, epsilon=1.0), np.random.default_rng(3)
    sent = [[0, 0] for _ in range(3)]
    for t in range(1, 500):
        again = np.random.default_rng(t)
        draws = [again.beta(1 + ones, 1 + zeros) for zeros, ones in sent]
        arm = policy.agent.act(policy.curator, t, np.random.default_rng(t))[0]
        assert arm == int(np.argmax(draws))
        bit = policy.curator.respond(float(rng.random() < (0.9, 0.6, 0.8)[arm]), 0.0, rng)
        policy.curator.add(arm, bit, 0.0, rng)
        sent[arm][int(bit)] += 1


def test_optimal_indices_lose_a_fraction_of_what_ldp_ucb_b_loses() -> None:
    """KL-UCB at most a half, IMED and Thompson sampling at most 0.35 of it, beyond 6 standard errors."""
    traces = {
        name: dp.simulate(name, arms="0.9,0.8,0.7,0.6,0.5", epsilon=1, horizon=10**5, runs=60, seed=0, checkpoints=1)
        for name in ("ldp-ucb-b", "ldp-klucb-b", "ldp-imed-b", "ldp-ts-b")
    }
    base = traces["ldp-ucb-b"]
    for name, share in (("ldp-klucb-b", 0.5), ("ldp-imed-b", 0.35), ("ldp-ts-b", 0.35)):
        found = traces[name]
        error = 6.0 * math.hypot(found.stderr[-1], share * base.stderr[-1])
        assert found.final_regret.mean() + error <= share * base.final_regret.mean(), name


def test_kl_lower_is_the_root_that_bisection_finds() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        q, budget = rng.random() ** 2, 10.0 ** rng.uniform(-12, 2)
        low, high = 0.0, q
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if kl(middle, q) <= budget else (middle, high)
        assert kl_lower(q, budget) == pytest.approx(high, abs=1e-6 if budget < 1e-9 else 1e-10)


def test_a_correction_can_be_undone_and_never_turns_the_order_round() -> None:
    evidence = np.concatenate([[0.0], np.geomspace(1e-6, 1e9, 4000)]).tolist()
    for correction in (0.0, 0.5, 1.0, 1.5, 7.0, 100.0):
        indices = [corrected(e, correction) for e in evidence]
        assert all(a <= b for a, b in pairwise(indices))
        for e, index in zip(evidence, indices, strict=True):
            if index > 1e-6:
                assert uncorrected(index, correction) == pytest.approx(e, rel=1e-6)


def test_evidence_may_rise_by_its_room_and_by_nearly_all_that_is_allowed() -> None:
    for correction in (0.0, 0.5, 1.0, 1.5, 7.0):
        for evidence in np.geomspace(1e-12, 1e6, 60).tolist():
            now = corrected(evidence, correction)
            for more in np.geomspace(1e-12, 1e3, 40).tolist():
                room = corrected_room(evidence, correction, more)
                counted = corrected(evidence + room, correction) - now
                assert counted <= more + 1e-15 * (evidence + room + 10.0)
                assert room >= more
                if now > 0.0 and more < 0.01 * now:
                    assert counted >= 0.9 * more - 1e-15 * (evidence + room + 10.0)
            assert corrected_room(evidence, correction, -1.0) == -1.0
