"""The source of a session's noise and the generator of its choices, from what a user gives for them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from dpbandits.checks import at_least
from dpbandits.errors import InputError
from dpbandits.exact import ExactNoise, SystemNoise, require_exact

__all__ = ["SIMULATED", "sources"]

SIMULATED: Literal["simulated"] = "simulated"


def sources(noise: ExactNoise | Literal["simulated"] | None, seed: int | None) -> tuple[Any, np.random.Generator]:
    """(noise, generator of choices). Only simulated noise has a seed; exact noise is by default the system's."""
    simulated = isinstance(noise, str) and noise == SIMULATED
    if seed is not None and not simulated:
        raise InputError("seed", f"is for simulated noise alone, got {seed}")
    if isinstance(noise, str) and not simulated:
        raise InputError("noise", f"must be '{SIMULATED}' or a source of exact noise, got {noise!r:.80}")
    of_noise, of_choices = np.random.SeedSequence(None if seed is None else at_least("seed", seed, 0)).spawn(2)
    choices = np.random.default_rng(of_choices)
    if isinstance(noise, str):
        return np.random.default_rng(of_noise), choices
    return SystemNoise() if noise is None else require_exact(noise), choices
