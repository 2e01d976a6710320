"""Noise primitives, each with its guarantee. What is here draws simulation noise from a seeded generator."""

from dpbandits.mechanisms.bernoulli import (
    attenuate,
    attenuation,
    bits_above,
    convert_to_bernoulli,
    debias,
    debias_variance,
    response_probability,
    successes,
)
from dpbandits.mechanisms.laplace import laplace

__all__ = [
    "attenuate",
    "attenuation",
    "bits_above",
    "convert_to_bernoulli",
    "debias",
    "debias_variance",
    "laplace",
    "response_probability",
    "successes",
]
