"""Settings shared by the figures on twenty arms: Figures 1 and 2 of Ren et al. 2020, and Figure 1 of HeLDP."""

from __future__ import annotations

BERNOULLI, MIXED = "@ren2020-bernoulli", "@ren2020-mixed"
SWEEP = (0.2, 0.5, 1.0, 2.0)
HORIZON = {"quick": 10**6, "paper": 10**7}
RUNS = {"quick": 4, "paper": 50}
L_RUNS = {"quick": 4, "paper": 20}
PAPER_RUNS = 50
LIMITS = {("b", 2.0): 1.7241, ("l", 2.0): 9.0, ("b", 0.2): 100.67, ("l", 0.2): 441.0}  # coth(ε/2)^2 and (1 + 4/ε)^2

TOLERANCE = "half a unit of the last printed digit, and three standard errors of both averages"
ORDER = "three standard errors of the difference"
