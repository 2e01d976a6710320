"""Settings shared by the figures on twenty arms: Figures 1 and 2 of Ren et al. 2020, and Figure 1 of HeLDP."""

from __future__ import annotations

BERNOULLI, MIXED = "@ren2020-bernoulli", "@ren2020-mixed"
SWEEP = (0.2, 0.5, 1.0, 2.0)
HORIZON = {"quick": 10**6, "paper": 10**7}
RUNS = {"quick": 10, "paper": 50}  # the papers' 50 for whatever has a printed ratio
L_RUNS = {"quick": 6, "paper": 20}  # for epsilons without a printed ratio
LIMITS = {("b", 2.0): 1.7241, ("l", 2.0): 9.0, ("b", 0.2): 100.67, ("l", 0.2): 441.0}  # coth(ε/2)^2 and (1 + 4/ε)^2

TOLERANCE = "the rounding of the print, half a unit of its second digit; our error must be small against it"
MEASURED = "the ratio of mean regrets against rounds: is it the printed one at some horizon? The horizon is not printed"
ONE_HORIZON = "the horizons at which each ratio is printed like this, interpolated between checkpoints"
ORDER = "three standard errors of the difference"
