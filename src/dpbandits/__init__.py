"""Differentially private multi-armed bandits, from the paper to production."""

__version__ = "0.1.0"
