"""Scalar functions for agents, curators and bounds. Those that play rounds run in plain Python and compiled."""

from dpbandits.numerics.beta import beta_deficit, log_beta_peak
from dpbandits.numerics.divergences import (
    d_eps,
    d_eps_slope,
    d_eps_upper,
    kl,
    kl_across,
    kl_lower,
    kl_lower_near,
    kl_upper,
)
from dpbandits.numerics.evidence import (
    chernoff,
    corrected,
    corrected_room,
    corrected_slope,
    evidence_between,
    uncorrected,
)
from dpbandits.numerics.logarithms import positive_log, top_bit
from dpbandits.numerics.newton import newton_step
from dpbandits.numerics.rewards import GRID, on_grid, sigmoid, unit
from dpbandits.numerics.sums import power_sum

__all__ = [
    "GRID",
    "beta_deficit",
    "chernoff",
    "corrected",
    "corrected_room",
    "corrected_slope",
    "d_eps",
    "d_eps_slope",
    "d_eps_upper",
    "evidence_between",
    "kl",
    "kl_across",
    "kl_lower",
    "kl_lower_near",
    "kl_upper",
    "log_beta_peak",
    "newton_step",
    "on_grid",
    "positive_log",
    "power_sum",
    "sigmoid",
    "top_bit",
    "uncorrected",
    "unit",
]
