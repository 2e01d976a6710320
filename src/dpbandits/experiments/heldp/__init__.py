"""The paper on heterogeneous levels."""

PAPER = "HeLDP: regret minimisation with heterogeneous local differential privacy"
SOURCE = "heterogeneous-levels paper (HeLDP)"  # how the theorems in dpbandits.bounds cite it
