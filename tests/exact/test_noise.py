"""Where noise comes from: which types a live service takes, what forked workers share, and what low bits betray."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpbandits.errors import InputError
from dpbandits.exact import ExactNoise, LaplaceCurator, RiggedNoise, SystemNoise, require_exact
from dpbandits.exact.noise import GRID_STEPS
from dpbandits.numerics import GRID

CONFIDENCE = 1 - 1e-6


def test_exact_noise_is_on_the_grid_of_rewards() -> None:
    """``exact`` stands on the standard library alone, so that the two numbers are written apart."""
    assert GRID_STEPS == GRID


def test_a_live_service_takes_exact_noise_only() -> None:
    noise = SystemNoise()
    assert require_exact(noise) is noise
    for other in (np.random.default_rng(1), RiggedNoise(os.urandom), os.urandom, None, SystemNoise):
        with pytest.raises(InputError, match=f"noise must be exact .*, got {type(other).__name__}"):
            require_exact(other)


def test_exact_noise_has_no_seed_and_no_state() -> None:
    with pytest.raises(TypeError):
        SystemNoise(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ExactNoise()  # type: ignore[abstract]
    assert {SystemNoise().uniform(64) for _ in range(100)}.__len__() == 100, "equal with probability 2^-51"


WORKERS = """
import json, os
import numpy as np
from dpbandits.exact import BernoulliCurator, LaplaceCurator
seeded, exact, bit = np.random.default_rng(7), LaplaceCurator("1/1000"), BernoulliCurator("1/1000")
seeded.laplace(), exact.respond(0.5), bit.respond(0.5)
drawn = []
for _ in range(2):
    reading, writing = os.pipe()
    if os.fork() == 0:
        noise = {"exact": [exact.respond(0.5) for _ in range(20)], "bits": [bit.respond(0.5) for _ in range(200)]}
        os.write(writing, json.dumps(noise | {"seeded": seeded.laplace(size=5).tolist()}).encode())
        os._exit(0)
    os.wait()
    drawn.append(json.loads(os.read(reading, 65536)))
print(json.dumps(drawn))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_workers_draw_different_noise() -> None:
    """Exact noise agrees by chance with probability below 2^-199; seeded noise always does, so the test can fail."""
    answer = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, check=True, text=True).stdout
    one, other = json.loads(answer)
    assert one["seeded"] == other["seeded"]
    assert one["bits"] != other["bits"]
    assert all(a != b for a, b in zip(one["exact"][:3], other["exact"][:3], strict=True))
    assert one["exact"] != other["exact"]


def least_epsilon(hits: int, other_hits: int, trials: int) -> float:
    """The epsilon below which an event seen so often on two inputs is refuted: log of Clopper-Pearson's bounds."""
    low = stats.beta.ppf((1 - CONFIDENCE) / 2, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - (1 - CONFIDENCE) / 2, other_hits + 1, trials - other_hits) if other_hits < trials else 1.0
    return math.log(low / high) if low else -math.inf


def finer(values: Sequence[float], bits: int) -> int:
    """How many of the values are no multiples of 2^-bits."""
    return sum(not math.ldexp(value, bits).is_integer() for value in values)


def odd(values: Sequence[float], bits: int) -> int:
    """How many are odd multiples of 2^-bits."""
    return sum(math.ldexp(value, bits) % 2 == 1 for value in values)


def test_low_bits_betray_floating_point_noise() -> None:
    """Mironov's attack (2012): 0 + noise keeps bits that 1 + noise rounds away. Claimed epsilon 1, refuted below 5."""
    trials = 20_000
    noise = np.random.default_rng(0)
    zero = (0.0 + noise.laplace(size=trials)).tolist()
    one = (1.0 + noise.laplace(size=trials)).tolist()
    assert least_epsilon(finer(zero, 53), finer(one, 53), trials) > 5


def test_low_bits_of_exact_noise_say_nothing_beyond_epsilon() -> None:
    """Each of the bounds holds with probability 1 - 1e-6 whatever the draws; that grid points only occur is certain."""
    trials = 20_000
    curator = LaplaceCurator("1")
    zero = [curator.value(curator.respond(0.0)) for _ in range(trials)]
    one = [curator.value(curator.respond(1.0)) for _ in range(trials)]
    assert finer(zero, 16) == finer(one, 16) == 0
    for bits in (16, 15, 14):
        assert least_epsilon(odd(zero, bits), odd(one, bits), trials) <= 1
        assert least_epsilon(odd(one, bits), odd(zero, bits), trials) <= 1


class Forgetful(dict[float, Any]):
    """What another thread may do between two steps: clear what was just kept."""

    def __setitem__(self, key: float, value: Any) -> None:
        pass


def test_a_thread_that_clears_the_kept_samplers_breaks_no_draw() -> None:
    noise = SystemNoise()
    noise.__dict__["_samplers"] = Forgetful()
    assert isinstance(noise.laplace(0.0, 2.0).steps, int)
