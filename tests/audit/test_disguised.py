"""What a red team found: false proofs, false violations, endless code and crashes. None of them may come back."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import broken_disguised
import numpy as np
import pytest
import right_subjects
from broken_central import Pair

from dpbandits.agents import UCB, Doubling
from dpbandits.audit import local, verify, watch
from dpbandits.audit.memory import check_memory
from dpbandits.audit.proof import prove
from dpbandits.audit.refusals import Refused
from dpbandits.audit.verify import _check_bulk
from dpbandits.curators import LocalBernoulli
from dpbandits.errors import InputError
from dpbandits.exact import SystemNoise
from dpbandits.mechanisms import truth_probability
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, published
from dpbandits.privacy import Guarantee


def made_with(curator: Any, is_local: bool = False) -> Any:
    @published("a test")
    def made(arms: int, *, epsilon: float) -> Parts:
        acts: Any = UCB.start(arms) if is_local else Doubling.start(arms, UCB.start(arms, alpha=3.1))
        return Parts(acts, curator.start(arms, epsilon=epsilon))

    return made


@pytest.mark.parametrize("name", broken_disguised.WHY)
def test_there_is_no_proof(name: str) -> None:
    policy = broken_disguised.MADE[name](2, epsilon=1.0)
    if policy.guarantee.trust == "local" and not broken_disguised.WHY[name]:
        assert math.isinf(local.worst_pair(policy.curator, None, 1.0).epsilon)
        return
    with pytest.raises(Refused, match=broken_disguised.WHY[name]):
        attempt(policy)


def attempt(policy: Any) -> None:
    """Look for a proof."""
    if policy.guarantee.trust == "local":
        local.worst_pair(policy.curator, None, 1.0)
    else:
        prove(policy, 8)
        _check_bulk(policy.curator)


def quiet(*_: float) -> float:
    return 0.0


def test_exact_noise_with_another_method_is_refused() -> None:
    noise: Any = SystemNoise()
    noise.laplace = quiet
    policy = broken_disguised.MADE["ByIndex"](2, epsilon=1.0)
    changed = policy.curator._replace(inner=noise)
    with pytest.raises(Refused, match="inner is no number, array or part"):
        check_memory(changed, "curator")


@pytest.mark.parametrize("name", ["ByIndex", "Spoof", "Coarse", "GlobalSwitch", "CoarseUniform", "Shift"])
def test_the_verdict_is_not_proved(name: str) -> None:
    verdict = verify(broken_disguised.MADE[name], epsilon=1.0, horizon=12)
    assert verdict.verdict in ("violated", "not refuted", "refused"), f"{verdict}"
    assert verdict.reason or verdict.violated


@pytest.mark.parametrize(("unit_", "view"), [("all rewards of a user", "actions"), ("one reward", "everything")])
def test_another_promise_is_refused(unit_: str, view: str) -> None:
    class Other(Pair):
        def guarantee(self) -> Guarantee:
            return Guarantee(self.epsilon, 0.0, "central", unit_, view, "")

    verdict = verify(made_with(Other), epsilon=1.0)
    assert verdict.verdict == "refused"
    assert unit_ in verdict.reason
    assert view in verdict.reason


def test_trusted_functions_and_builtins_are_what_they_were() -> None:
    """In processes of their own, because they change the package and the builtins."""
    source = (
        "import dpbandits.numerics as n\n"
        "from dpbandits import policies\nfrom dpbandits.audit.proof import prove\n"
        "from dpbandits.audit.refusals import Refused\n"
        "n.unit.__code__ = (lambda x: x).__code__\n"
        "try:\n    prove(policies.adap_ucb(2, epsilon=1.0), 8)\n"
        "except Refused as refusal:\n    print(refusal)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert "is not what its source says" in done.stdout


class Pool(Pair):
    """Right: its noise is drawn at the start."""

    __slots__ = ()

    @classmethod
    def start(cls, arms: int, *, epsilon: float) -> Any:
        noise = np.array([0.0 + SystemNoise().laplace(0.0, 1.0 / epsilon) for _ in range(arms)])
        return cls(*Pair.start(arms, epsilon=epsilon)._replace(raw_noise=noise))


class Split(LocalBernoulli):
    """Right: one uniform number, whose high bits round the reward, and whose low bits flip the result."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        u = rng.random() * 65536.0
        low = u % 1.0
        bit = 1.0 if (u - low) / 65536.0 < unit(reward) else 0.0
        return bit if low < truth_probability(self.epsilon) - 1e-9 else 1.0 - bit


def test_right_ones_are_not_violated() -> None:
    """The answers of ``Split`` are counted at a fixed seed; the bounds fail with probability 1e-9."""
    pool = verify(made_with(Pool), epsilon=1.0)
    assert (pool.verdict, "source of chance" in pool.reason) == ("refused", True)
    assert verify(made_with(Split, True), epsilon=1.0).verdict == "not refuted"
    assert verify(right_subjects.two_coins, epsilon=1e-9).verdict == "proved"


class Endless(LocalBernoulli):
    """Wraps rewards into [0, 1], for ever if one is infinite."""

    __slots__ = ()

    def respond(self, reward: float, level: float, rng: Any) -> float:
        while reward > 1.0:
            reward -= 1.0
        return 1.0 if rng.random() < 0.5 else 0.0


def test_endless_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SECONDS", 1.0)
    verdict = verify(made_with(Endless, True), epsilon=1.0)
    assert verdict.verdict == "refused"
    assert "does not return within" in verdict.reason


@pytest.mark.parametrize("promise", [None, "1.0", Guarantee.central("1.0"), Guarantee.central(math.nan)])  # type: ignore[arg-type]
def test_a_guarantee_that_is_none_is_one_line(promise: Any) -> None:
    class Promises(Pair):
        def guarantee(self) -> Any:
            return promise

    with pytest.raises(InputError, match="policy must"):
        verify(made_with(Promises), epsilon=1.0)


def test_too_much_memory_is_refused() -> None:
    class Big(Pair):
        @classmethod
        def start(cls, arms: int, *, epsilon: float) -> Any:
            return cls(*Pair.start(arms, epsilon=epsilon)._replace(raw_noise=np.zeros((arms, 5000))))

    with pytest.raises(Refused, match="cells of memory"):
        prove(made_with(Big)(2, epsilon=1.0), 8)


def test_a_large_epsilon_is_proved_without_its_actions() -> None:
    verdict = verify("adap-ucb", epsilon=700.0)
    assert (verdict.verdict, verdict.epsilon, verdict.view) == ("proved", 700.0, "released values")
