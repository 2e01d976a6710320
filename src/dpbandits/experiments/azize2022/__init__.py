"""Azize & Basu 2022."""

PAPER = "Azize & Basu 2022, When Privacy Meets Partial Information"
SOURCE = "Azize & Basu 2022"  # how the theorems in dpbandits.bounds cite it
