"""The paper on heterogeneous levels."""

PAPER = "HeLDP: regret minimisation with heterogeneous local differential privacy"
