"""Who pays: distributions of rewards, problems of the papers, a user's own log; and the users' privacy levels."""

from dpbandits.environments.bernoulli import Bernoulli
from dpbandits.environments.mixed import Mixed
from dpbandits.environments.population import Levels, NormalLevels, parse_levels
from dpbandits.environments.problems import PROBLEMS
from dpbandits.environments.text import build, parse_arms

__all__ = ["PROBLEMS", "Bernoulli", "Levels", "Mixed", "NormalLevels", "build", "parse_arms", "parse_levels"]
