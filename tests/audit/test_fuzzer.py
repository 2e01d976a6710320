"""Right policies with random faults: the verdict agrees with a brute force that shares no code with the audits.

Each case is the source of a curator and an agent, put together from a grammar of clamps, scales, times of release, ways
to keep and share noise, and ways to look. The source is written to a file, because the verifier reads it. Where the
brute force finds more than the claim, the verdict must not be *proved*; where the verdict is *violated*, the brute
force must find more than the claim, too. ``pytest --fuzz-cases 5000`` tries more than the usual 300.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import oracle
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from dpbandits.audit import verify, witness

SOURCE = """
from typing import Any, NamedTuple
from broken_central import Pair
from dpbandits.agents import UCB, Doubling
from dpbandits.mechanisms import laplace
from dpbandits.numerics import unit
from dpbandits.policies.policy import Parts, published
from dpbandits.protocols import NO_LINE

class Made(Pair):
    def add(self, arm, response, level, rng):
        self.raw_counts[arm] += 1
        self.raw_sums[arm] += {clamp}
{timing}

    def close(self, arm, rng):
        n = self.raw_counts[arm]
{noise}
        self.counts[arm] = n
        self.raw_counts[arm] = 0
{forget}
{look}

class Turns(NamedTuple):
    arms: int

    def act(self, releases, t, rng):
        if t <= self.arms:
            return t - 1, 1, NO_LINE
        return {act}

@published("made by a fuzzer")
def made(arms: int, *, epsilon: float) -> Parts:
    return Parts({agent}, Made.start(arms, epsilon=epsilon))
"""

GRAMMAR: dict[str, dict[str, str]] = {
    "clamp": {
        "right": "unit(response)",
        "turned": "1.0 - unit(response)",
        "half": "0.5 * unit(response)",
        "double": "2.0 * unit(response)",
        "none": "response",
        "own": "min(1.0, max(0.0, response))",
    },
    "timing": {
        "right": "        pass",
        "by count": "        if self.raw_counts[arm] == 2:\n"
        "            self.seconds[arm] = laplace(self.raw_sums[arm], 1.0, self.epsilon, rng)",
        "by data": "        if self.raw_sums[arm] > 0.5:\n            self.seconds[arm] = rng.laplace(0.0, 1.0)",
    },
    "noise": {
        "right": "        self.means[arm] = laplace(self.raw_sums[arm], {scale}, self.epsilon, rng) / n",
        "kept": "        if self.counts[arm] == 0:\n"
        "            self.raw_noise[arm] = rng.laplace(0.0, {scale} / self.epsilon)\n"
        "        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[arm]) / n",
        "shared": "        if arm == 0:\n            self.raw_noise[0] = rng.laplace(0.0, {scale} / self.epsilon)\n"
        "        self.means[arm] = (self.raw_sums[arm] + self.raw_noise[0]) / n",
        "shown twice": "        self.means[arm] = laplace(self.raw_sums[arm], {scale}, self.epsilon, rng) / n\n"
        "        self.seconds[arm] = laplace(self.raw_sums[arm], {scale}, self.epsilon, rng)",
        "copied": "        self.means[arm] = laplace(self.raw_sums[arm], {scale}, self.epsilon, rng) / n\n"
        "        self.seconds[arm] = 3.0 - self.means[arm]",
        "rest shown": "        self.means[arm] = laplace(self.raw_sums[arm], {scale}, self.epsilon, rng) / n\n"
        "        self.seconds[arm] = self.means[arm] - self.raw_sums[arm] / n",
    },
    "forget": {
        "right": "        self.raw_sums[arm] = 0.0",
        "not": "        pass",
        "half": "        self.raw_sums[arm] *= 0.5",
    },
    "look": {
        "right": "",
        "mean": "    def mean(self, arm):\n        return self.means[arm] + self.raw_sums[arm]",
        "samples": "    def samples(self, arm, ahead):\n        return self.counts[arm] + 50.0 * self.raw_sums[arm]",
        "width": "    def width(self, arm, exponent, ahead):\n        return 50.0 * self.raw_sums[arm]",
        "ready": "    def ready(self, arm, exponent):\n"
        "        return self.counts[arm] > 0 and self.raw_sums[arm] < 0.5",
    },
    "act": {
        "right": "(0 if releases.mean(0) > releases.mean(1) else 1), 1, NO_LINE",
        "stints": "(t - 1) % self.arms, 2, NO_LINE",
        "looks": "(0 if releases.raw_sums[0] > 0.5 else 1), 1, NO_LINE",
    },
    "agent": {"right": "Doubling.start(arms, UCB.start(arms, alpha=3.1))", "turns": "Turns(arms)"},
}
SCALES = ("0.5", "0.9", "1.0", "1.0", "1.0", "2.0", "4.0")
NUMBER = itertools.count()


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, str]:
    """A policy's source, and its faults in words. Most choices are the right ones, so that faults come singly."""
    faults = draw(st.lists(st.sampled_from(sorted(GRAMMAR)), max_size=3, unique=True))
    chosen = {name: draw(st.sampled_from(sorted(GRAMMAR[name]))) if name in faults else "right" for name in GRAMMAR}
    scale = draw(st.sampled_from(SCALES))
    parts = {name: GRAMMAR[name][choice].replace("{scale}", scale) for name, choice in chosen.items()}
    words = ", ".join(f"{name} {choice}" for name, choice in chosen.items() if choice != "right")
    return SOURCE.format(**parts), f"scale {scale}, {words}"


def load(source: str, folder: Path) -> Any:
    """The policy of a source, from a file of its own."""
    name = f"fuzzed_{next(NUMBER)}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.made


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_verdicts_agree_with_brute_force(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(witness, "MOST_PLAYED", 2500)  # a short search: what it misses is not refuted
    cases = int(request.config.getoption("--fuzz-cases")) // 4
    seen: Counter[str] = Counter()
    known: dict[str, str] = {}

    @seed(part)
    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=sources())
    def agrees(case: tuple[str, str]) -> None:
        source, faults = case
        if source in known:  # two draws may make the same policy
            seen[known[source]] += 1
            return
        factory = load(source, tmp_path)
        verdict = verify(factory, epsilon=1.0, horizon=12)
        seen[verdict.verdict] += 1
        known[source] = verdict.verdict
        truth = oracle.true_epsilon(factory(2, epsilon=1.0), rounds=3, longer=12 if verdict.violated else 6)
        if verdict.verdict in ("proved", "vacuous"):
            worst = max(verdict.epsilon or 0.0, verdict.released or 0.0)
            assert truth <= 1.0 + 1e-6, f"{faults}: the truth is {truth}\n{verdict}"
            assert truth <= worst * (1.0 + 1e-6), f"{faults}: the truth is {truth}\n{verdict}"
        if verdict.violated:
            assert truth > 1.0 + 1e-6 or math.isinf(truth), f"{faults}: the truth is {truth}\n{verdict}"

    agrees()
    assert seen["proved"] > 0.05 * cases, f"the fuzzer makes too few right policies: {seen}"
    assert seen["violated"] > 0.2 * cases, f"the fuzzer makes too few broken policies: {seen}"
