"""Arrays of numbers, and the source of random numbers: once for the whole package."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Integers", "Rng"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

#: A generator of NumPy in simulations; live, anything with the methods ``random``, ``laplace`` and ``normal``.
Rng: TypeAlias = Generator
