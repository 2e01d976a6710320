"""The heterogeneous-levels paper."""

PAPER = "HeLDP: regret minimisation with heterogeneous local differential privacy"
