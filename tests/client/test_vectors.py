"""The vectors that clients in all languages share: up to date, and true of the Python client."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dpbandits.errors import InputError
from dpbandits.exact import RiggedNoise, exponential, logistic, rational
from dpbandits.exact.wire import encode

CLIENTS = Path(__file__).parents[2] / "clients"
VECTORS: dict[str, Any] = json.loads((CLIENTS / "vectors.json").read_text())


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """The script that writes the vectors."""
    spec = importlib.util.spec_from_file_location("make_vectors", CLIENTS / "make_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_script_writes(maker: ModuleType) -> None:
    assert (CLIENTS / "vectors.json").read_text() == maker.text(), "run: python clients/make_vectors.py"


def test_texts() -> None:
    for text, lowest in VECTORS["good"].items():
        assert str(rational("epsilon", text)) == lowest
    for text in VECTORS["bad"]:
        with pytest.raises(InputError):
            rational("epsilon", text)


def test_threshold_words() -> None:
    for vector in VECTORS["words"]:
        level = rational("epsilon", vector["epsilon"])
        assert [f"{logistic(level).word(k):016x}" for k in range(4)] == vector["logistic"]
        assert [f"{exponential(level).word(k):016x}" for k in range(4)] == vector["exponential"]


def test_responses_and_their_bytes(maker: ModuleType) -> None:
    for vector in VECTORS["responses"]:
        left = list(vector["entropy"])
        noise = RiggedNoise(lambda n, left=left: b"".join(bytes.fromhex(left.pop(0))[::-1] for _ in range(n // 8)))  # type: ignore[misc]
        response = maker.CURATORS[vector["curator"]](vector["epsilon"], noise).respond(float(vector["reward"]))
        assert str(response) == vector["response"]
        assert left == []
        assert encode("d-1", rational("epsilon", vector["epsilon"]), response).decode() == vector["body"]


def test_the_vectors_cover_every_curator_and_outcome(maker: ModuleType) -> None:
    outcomes: dict[str, set[str]] = {}
    for vector in VECTORS["responses"]:
        outcomes.setdefault(vector["curator"], set()).add(vector["response"])
    assert set(outcomes) == set(maker.CURATORS)
    for curator, responses in outcomes.items():
        numbers = "laplace" in curator or "piecewise" in curator
        assert len(responses) > 10 if numbers else responses == {"0", "1"}
