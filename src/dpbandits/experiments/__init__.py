"""Every figure and printed number of the four papers, a verdict on each claim, and comparisons of your own."""
