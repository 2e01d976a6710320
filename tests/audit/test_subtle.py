"""What a second red team found: policies that mean one thing on paper, and another when they run."""

from __future__ import annotations

import dataclasses
import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_runtime
import broken_subtle
import pytest
import right_subjects

from dpbandits import policies
from dpbandits.audit import local, verify
from dpbandits.audit.accounts import Accounts
from dpbandits.audit.counts import Count, Truth
from dpbandits.audit.proof import prove
from dpbandits.audit.reading import changed_names
from dpbandits.audit.refusals import Refused
from dpbandits.audit.releases import accounted, accounted_adaptively
from dpbandits.audit.verdict import OFF_GRID
from dpbandits.audit.verify import _check_bulk

ROUNDS = 16


def attempt(policy: Any) -> Any:
    """What can be proved of a policy."""
    if policy.guarantee.trust == "local":
        return local.worst_pair(policy.curator, None, 1.0, changed_names(policy))
    proof = prove(policy, ROUNDS)
    _check_bulk(policy.curator)
    return proof


def is_proved(policy: Any) -> None:
    """A right policy is proved at exactly its epsilon of 1."""
    is_local = policy.guarantee.trust == "local"
    verdict = verify(policy, horizon=None if is_local else 3, view=None if is_local else "released")
    assert verdict.verdict == "proved", f"{verdict}"
    assert verdict.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", broken_subtle.WHY)
def test_there_is_no_proof(name: str) -> None:
    why, policy = broken_subtle.WHY[name], broken_subtle.MADE[name](2, epsilon=1.0)
    if why in ("", broken_subtle.OFF_GRID):
        proof = attempt(policy)
        assert proof.epsilon > 1.0 + 1e-9 if not why else not proof.on_grid
        return
    with pytest.raises((Refused, TypeError), match=why):
        attempt(policy)


@pytest.mark.parametrize("name", ["Underflow", "TruthsAdded", "NoiseOnAMean", "OtherMethod", "WithTruths"])
def test_the_verdict_is_not_proved(name: str) -> None:
    verdict = verify(broken_subtle.MADE[name], epsilon=1.0, horizon=12)
    assert verdict.verdict in ("violated", "not refuted", "refused"), f"{verdict}"
    assert verdict.reason or verdict.violated
    assert (verdict.reason == OFF_GRID) == (name == "NoiseOnAMean")


def test_the_faults_are_real() -> None:
    """What the subjects rest on, in plain Python and NumPy."""
    total = 0.0
    for _ in range(broken_subtle.TIMES):
        total += broken_subtle.WEIGHT
    assert total >= broken_subtle.SUM > broken_subtle.TIMES * broken_subtle.WEIGHT
    curator = broken_subtle.MADE["TruthsAdded"](2, epsilon=1.0).curator
    curator.raw_counts[0] = 3
    assert (curator.raw_counts[0] > 0) + (curator.raw_counts[1] < 1) == 1  # NumPy's
    assert broken_subtle.MADE["OtherMethod"](2, epsilon=1.0).curator._replace(raw_noise=[0.5, 0.0]).mean(0) == 0.5
    assert math.isnan(1e90 * 1e90 * 1e90 * 1e90 * 0.0)


def imported(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = f"runtime_{name}"
    (folder / f"{module}.py").write_text(broken_runtime.HEADER + text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(math, "keep", None, raising=False)
    return importlib.import_module(module)


@pytest.mark.parametrize("name", broken_runtime.SOURCES)
def test_names_that_can_change_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why, text = broken_runtime.SOURCES[name]
    module = imported(name, text, tmp_path, monkeypatch)
    with pytest.raises(Refused, match=why):
        attempt(module.made(2, epsilon=1.0))


def test_the_same_module_without_the_fault_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n\nclass Curator(Scaled):\n    __slots__ = ()\n"
    policy = imported("right", text, tmp_path, monkeypatch).made(2, epsilon=1.0)
    assert (attempt(policy).epsilon, attempt(policy).on_grid) == (1.0, True)


@pytest.mark.parametrize("name", broken_runtime.ALONE)
def test_exact_noise_that_was_replaced_is_refused(name: str, tmp_path: Path) -> None:
    why, text = broken_runtime.ALONE[name]
    (tmp_path / f"{name}.py").write_text(broken_runtime.HEADER + text)
    source = (
        f"from {name} import made\nfrom dpbandits.audit.proof import prove\n"
        "from dpbandits.audit.refusals import Refused\n"
        "try:\n    print(prove(made(2, epsilon=1.0), 8))\nexcept Refused as refusal:\n    print(refusal)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert why in done.stdout


def test_truths_are_asked_and_not_added() -> None:
    three: Any = Count(3)
    more = three > 2
    assert more
    assert repr(type(more)) == repr(Truth)
    assert 2.0 * more + (1 - more) == 2.0
    assert (more & (three < 4)) == True  # noqa: E712
    for wrong in ("more + more", "-more", "~more", "True - more", "[0, 1][more]"):
        with pytest.raises(Refused, match="booleans"):
            eval(wrong, {"more": more})


def test_a_comparison_needs_room_where_floats_round() -> None:
    log = Accounts()
    clamped = broken_reward(log)
    assert not clamped + clamped.again() > 2.0  # bounds that floats hold exactly
    assert not 0.1 * clamped > 0.2
    with pytest.raises(Refused, match="branches on reward"):
        assert 0.1 * clamped > 0.1
    with pytest.raises(Refused, match="not finite"):
        clamped + math.inf


@pytest.mark.parametrize(("factor", "word"), [(1.0, "proved"), (0.99, "refused")])
def test_normal_noise_is_proved_by_zcdp(factor: float, word: str) -> None:
    made = policies.adac_ucb(2, epsilon=1.0, delta=1e-6)
    promised = made.curator.rho  # type: ignore[attr-defined]
    curator = made.curator._replace(rho=promised / factor)  # type: ignore[attr-defined]
    [[cost]] = prove(dataclasses.replace(made, curator=curator), 8).costs
    assert cost == pytest.approx(math.sqrt(2.0 * promised / factor))
    verdict = verify(dataclasses.replace(made, curator=curator), horizon=8)
    assert verdict.verdict == word
    if word == "proved":
        assert verdict.epsilon == pytest.approx(promised + 2.0 * math.sqrt(promised * math.log(1e6)))
    else:
        assert "only epsilon 1.005" in verdict.reason
    assert verify(made, horizon=8, delta=0.0).verdict == "refused"  # normal noise gives no pure epsilon


def test_losses_that_choices_decide_are_accounted_for_adaptive_choices() -> None:
    proof = prove(right_subjects.two_ways(2, epsilon=1.0), 8)
    assert (proof.fixed, proof.stints, proof.costs) == (False, True, frozenset({(1.0,), (0.5, 0.5)}))
    assert accounted_adaptively(proof.costs, 1e-3) >= max(accounted(costs, 1e-3) for costs in proof.costs)
    assert prove(policies.adap_ucb(2, epsilon=1.0), 8).fixed


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("adap-ucb", "proved for any number of stints (batches) of up to 12 rounds"),
        ("dp-ucb", "proved for up to 12 rounds"),
        ("ldp-ucb-b", "proved for each response, in every round"),
    ],
)
def test_the_first_line_says_for_how_many_rounds(name: str, covered: str) -> None:
    horizon = None if name.startswith("ldp") else 12
    verdict = verify(name, epsilon=1.0, horizon=horizon, view=None if horizon is None else "released")
    assert str(verdict).splitlines()[0] == f"{name}: {covered}"
    assert f"{verify(name, epsilon=1.0, claim=0.5, horizon=horizon)}".startswith(f"{name}: violated\n")


def broken_reward(log: Accounts) -> Any:
    from dpbandits.audit.functions import unit

    return unit(log.reward(0))
