"""Ren, Zhou, Liu & Shroff 2020."""

PAPER = "Ren, Zhou, Liu & Shroff 2020, Multi-Armed Bandits with Local Differential Privacy"
SOURCE = "Ren, Zhou, Liu & Shroff 2020"  # how the theorems in dpbandits.bounds cite it
