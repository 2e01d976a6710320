"""Azize & Basu 2022."""

PAPER = "Azize & Basu 2022, When Privacy Meets Partial Information"
