"""Write ``vectors.json``: what every client must compute, from the Python package.

python clients/make_vectors.py
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpbandits.client.responder import responder_for
from dpbandits.exact import (
    BernoulliCurator,
    LaplaceCurator,
    LocalCurator,
    PiecewiseCurator,
    Probability,
    RandomisedResponse,
    RiggedNoise,
    SigmoidCurator,
    exponential,
    logistic,
    rational,
    window_width,
)
from dpbandits.exact.probability import beside
from dpbandits.exact.sampling import bit_probabilities
from dpbandits.exact.wire import encode

FILE = Path(__file__).with_name("vectors.json")

GOOD = ("0.1", "1/3", "2/6", "1", "007", "0.50", "1000", "0.000001", "12345678901234567890.5")
BAD = (
    "",
    "0",
    "0.0",
    "0/3",
    "-1",
    "+1",
    "1e-3",
    " 1",
    "1\n",
    "1/0",
    "1/",
    "/3",
    ".5",
    "1.",
    "1/2.5",
    "nan",
    "9" * 201,
    "0." + "3" * 150,
)
LEVELS = ("0.000001", "0.01", "0.1", "1/3", "0.5", "1", "2.5", "10", "100", "1000", "1000000")
REWARDS = ("0", "1", "0.3", "0.5", "1e-15", "-2.5", "7", "NaN", "Infinity", "-Infinity")

CURATORS: dict[str, Callable[[str, RiggedNoise], LocalCurator]] = {
    "randomisedResponse": RandomisedResponse,
    "bernoulliCurator": BernoulliCurator,
    "laplaceCurator": LaplaceCurator,
    "piecewiseCurator": PiecewiseCurator,
    "sigmoidCurator(bernoulliCurator)": lambda epsilon, noise: SigmoidCurator(BernoulliCurator(epsilon, noise)),
    "sigmoidCurator(laplaceCurator)": lambda epsilon, noise: SigmoidCurator(LaplaceCurator(epsilon, noise)),
}


def words(label: str) -> Iterator[int]:
    """Fixed 64-bit words that look random."""
    for block in range(2**32):
        digest = hashlib.sha256(f"{label} {block}".encode()).digest()
        yield int.from_bytes(digest[:8], "little")


def tied(epsilon: str) -> dict[str, list[int]]:
    """Words that equal the thresholds for a while, so that the digits beyond the first 64 decide."""
    top = 2**64 - 1
    lie = logistic(Fraction(epsilon))
    tail, *bits = bit_probabilities(Fraction(epsilon) / 2**16)
    half = [tail.word(0), *(bit.word(0) for bit in bits)]
    settled = [tail.word(1), tail.word(2) - 1, *(bit.word(1) + (-1) ** n for n, bit in enumerate(bits))]
    other = [top] * len(half)
    width = window_width(Fraction(epsilon))
    outside, (border, rest) = beside(Fraction(epsilon), width, 2**16), divmod(2**64, width)
    return {
        "randomisedResponse": [lie.word(0), lie.word(1), lie.word(2) - 1],
        "bernoulliCurator": [0, lie.word(0), lie.word(1) + 1],
        "laplaceCurator": [*half, *other, *settled, 0, 0, top],
        "piecewiseCurator": [outside.word(0), border, top, outside.word(1) + 1, (rest << 64) // width + 1],
    }


#: What servers tell clients to do: the mechanism, the range of rewards, and whether any reward is allowed.
BLOCKS: tuple[dict[str, Any], ...] = tuple(
    {"mechanism": mechanism, "epsilon": "1/3", "range": ends, "sigmoid": sigmoid}
    for mechanism in ("bernoulli", "laplace", "piecewise")
    for ends in (None, [0, 1], [-10, 10], [0.1, 0.7])
    for sigmoid in (False, True)
)


def client(block: dict[str, Any], reward: str) -> dict[str, Any]:
    """One response of a client to a server's block, to as many random words as it takes."""
    used: list[int] = []
    entropy = words(f"client {json.dumps(block)} {reward}")
    made = responder_for(block, RiggedNoise(_drawing(entropy, used)))(float(reward))
    return {"block": block, "reward": reward, "entropy": [f"{word:016x}" for word in used], "response": str(made)}


def _drawing(entropy: Iterator[int], used: list[int]) -> Callable[[int], bytes]:
    def draw(n: int) -> bytes:
        used.extend(next(entropy) for _ in range(n // 8))
        return b"".join(word.to_bytes(8, "little") for word in used[-(n // 8) :])

    return draw


def response(curator: str, epsilon: str, reward: str, entropy: Iterator[int]) -> dict[str, Any]:
    """One response to these words: as many of them as it takes."""
    used: list[int] = []
    made = CURATORS[curator](epsilon, RiggedNoise(_drawing(entropy, used))).respond(float(reward))
    return {
        "curator": curator,
        "epsilon": epsilon,
        "reward": reward,
        "entropy": [f"{word:016x}" for word in used],
        "response": str(made),
        "body": encode("d-1", rational("epsilon", epsilon), made).decode(),
    }


def thresholds(epsilon: str) -> Iterator[dict[str, Any]]:
    """The first two words that each random word of a draw is compared with, and what a smaller random word adds.

    The reward is 0. ``before`` random words come first: Convert-to-Bernoulli compares one with the reward.
    """
    lie = logistic(Fraction(epsilon))
    for curator, before in (("randomisedResponse", 0), ("bernoulliCurator", 1)):
        yield {"curator": curator, "epsilon": epsilon, "before": before, "words": [_two(lie)], "adds": ["1"]}
    coins = bit_probabilities(Fraction(epsilon) / 2**16)
    adds = [1 << place for place in reversed(range(len(coins)))]
    yield {
        "curator": "laplaceCurator",
        "epsilon": epsilon,
        "before": 0,
        "words": 2 * [_two(coin) for coin in coins],
        "adds": [*map(str, adds), *(str(-step) for step in adds)],
    }


def _two(probability: Probability) -> list[str]:
    return [f"{probability.word(k):016x}" for k in range(2)]


def vectors() -> dict[str, Any]:
    """All of them."""
    responses = [
        response(curator, epsilon, reward, words(f"{curator} {epsilon} {reward}"))
        for curator in CURATORS
        for epsilon in (("0.1", "2.5") if "laplace" in curator else LEVELS)
        for reward in REWARDS
    ]
    ties = [response(curator, e, "1", iter(entropy)) for e in ("0.1", "1/3") for curator, entropy in tied(e).items()]
    return {
        "made_by": "clients/make_vectors.py",
        "good": {text: str(rational("epsilon", text)) for text in GOOD},
        "bad": list(BAD),
        "words": [
            {
                "epsilon": level,
                "logistic": [f"{logistic(Fraction(level)).word(k):016x}" for k in range(4)],
                "exponential": [f"{exponential(Fraction(level)).word(k):016x}" for k in range(4)],
            }
            for level in LEVELS
        ],
        "thresholds": [row for level in ("0.000001", "0.1", "1/3", "1", "2.5", "40") for row in thresholds(level)],
        "responses": responses + ties,
        "clients": [client(block, reward) for block in BLOCKS for reward in REWARDS],
    }


def text() -> str:
    """The file's content: one vector a line."""
    lines = []
    for name, content in vectors().items():
        rows = content if isinstance(content, list) and isinstance(content[0], dict) else None
        value = "[\n    " + ",\n    ".join(map(json.dumps, rows)) + "\n  ]" if rows else json.dumps(content)
        lines.append(f"  {json.dumps(name)}: {value}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text())
