"""Noise primitives, each with its guarantee. What is here draws simulation noise from a seeded generator."""

from dpbandits.mechanisms.bernoulli import (
    convert_to_bernoulli,
    debias,
    debias_variance,
    response_probability,
)
from dpbandits.mechanisms.laplace import laplace

__all__ = [
    "convert_to_bernoulli",
    "debias",
    "debias_variance",
    "laplace",
    "response_probability",
]
