"""Mechanisms that make one value private, each with its guarantee. The source of noise is an argument."""

from dpbandits.mechanisms.bernoulli import (
    attenuate,
    attenuation,
    convert_to_bernoulli,
    debias,
    debias_variance,
    response_probability,
    truth_probability,
)
from dpbandits.mechanisms.gaussian import gaussian, zcdp_at
from dpbandits.mechanisms.laplace import laplace
from dpbandits.mechanisms.piecewise import piecewise, piecewise_mean, window_probability

__all__ = [
    "attenuate",
    "attenuation",
    "convert_to_bernoulli",
    "debias",
    "debias_variance",
    "gaussian",
    "laplace",
    "piecewise",
    "piecewise_mean",
    "response_probability",
    "truth_probability",
    "window_probability",
    "zcdp_at",
]
