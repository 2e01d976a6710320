"""Tossou & Dimitrakakis 2016."""

PAPER = "Tossou & Dimitrakakis 2016, Algorithms for Differentially Private Multi-Armed Bandits"
SOURCE = "Tossou & Dimitrakakis 2016"  # how the theorems in dpbandits.bounds cite it
