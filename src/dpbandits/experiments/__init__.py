"""The figures and printed numbers of four papers, a verdict on each claim, and comparisons defined by users."""
