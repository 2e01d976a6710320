"""What a second red team found: policies that mean one thing on paper, and another when they run."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_runtime
import broken_subtle
import pytest

from dpbandits.audit import local, verify
from dpbandits.audit.counts import Count, Truth
from dpbandits.audit.proof import prove
from dpbandits.audit.reading import changed_names
from dpbandits.audit.refusals import Refused
from dpbandits.audit.symbols import Accounts
from dpbandits.audit.verify import OFF_GRID, _check_bulk

ROUNDS = 16


def attempt(policy: Any) -> Any:
    """What can be proved of a policy."""
    if policy.guarantee.trust == "local":
        return local.worst_pair(policy.curator, None, 1.0, changed_names(policy))
    proof = prove(policy, ROUNDS)
    _check_bulk(policy.curator)
    return proof


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
    more = Count(3) > 2
    assert isinstance(more, Truth)
    assert more
    assert 2.0 * more + (1 - more) == 2.0
    assert (more & (Count(1) < 2)) == True  # noqa: E712
    for wrong in (lambda: more + more, lambda: -more, lambda: ~more, lambda: True - more, lambda: [0, 1][more]):
        with pytest.raises(Refused, match="truths"):
            wrong()


def test_a_comparison_needs_room_where_floats_round() -> None:
    log = Accounts()
    clamped = broken_reward(log)
    assert not clamped + clamped.again() > 2.0  # bounds that floats hold exactly
    assert not 0.1 * clamped > 0.2
    with pytest.raises(Refused, match="branches on reward"):
        assert 0.1 * clamped > 0.1
    with pytest.raises(Refused, match="not finite"):
        clamped + math.inf


def broken_reward(log: Accounts) -> Any:
    from dpbandits.audit.functions import unit

    return unit(log.reward(0))
